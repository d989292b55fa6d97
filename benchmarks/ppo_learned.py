"""How long from a command to a trained CartPole, start-up included?

    python benchmarks/ppo_learned.py [--seeds 0 1 2]

`batchppo train cartpole` against a script of Stable-Baselines3 with the RL Zoo's hyperparameters.
Both evaluate 20 episodes every 10,000 steps and end when their mean return is 475 (`to 475`), or
train all 100,000 steps (`100k steps`). The two take turns; rows go to results/ppo_learned.csv, and
those that are there are not run again.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ppo_peers import default_folder, installed, peers_python
from result_rows import append, read

RESULTS = Path(__file__).parent / "results" / "ppo_learned.csv"
STEPS, EVERY, EPISODES, GOAL = 100_000, 10_000, 20, 475
PEER = Path(__file__).with_name("ppo_zoo_cartpole.py")
ENDS = ("to 475", "100k steps")


def command(candidate, end, seed, folder, python):
    """Returns the command line of one training."""
    stops = end == ENDS[0]
    if candidate == "sb3":
        return [python, PEER, str(seed), str(GOAL if stops else 0)]
    batchppo = [sys.executable, "-m", "batchppo_cli", "train", "cartpole", "--quiet"]
    batchppo += ["--logdir", folder, "--seed", str(seed), "--timesteps", str(STEPS)]
    if not stops:
        return [*batchppo, "--eval-every", str(STEPS), "--eval-episodes", str(EPISODES)]
    batchppo += ["--eval-every", str(EVERY), "--eval-episodes", str(EPISODES)]
    return [*batchppo, "--stop-at", str(GOAL)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--peers-env", type=Path, default=default_folder(), metavar="DIR")
    arguments = parser.parse_args()
    python = peers_python(arguments.peers_env)
    candidates = ["batchppo", *(["sb3"] if installed(python, ["sb3-dummy"]) else [])]
    done = {(row["end"], row["candidate"], int(row["seed"])) for row in read(RESULTS)}
    # One thread: more make Stable-Baselines3 slower with networks of this size.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for seed in arguments.seeds:
        for end in ENDS:
            for candidate in candidates:
                if (end, candidate, seed) in done:
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    began = time.perf_counter()
                    subprocess.run(
                        command(candidate, end, seed, folder, python),
                        check=True,
                        env=environment if candidate == "sb3" else None,
                    )
                    seconds = time.perf_counter() - began
                row = {
                    "end": end,
                    "candidate": candidate,
                    "seed": seed,
                    "seconds": f"{seconds:.1f}",
                }
                print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
                append(RESULTS, row)
    for end in ENDS:
        for candidate in candidates:
            found = [r for r in read(RESULTS) if (r["end"], r["candidate"]) == (end, candidate)]
            median = statistics.median(float(row["seconds"]) for row in found)
            print(f"{end}: {candidate} {median:.1f} s, median of {len(found)}")


if __name__ == "__main__":
    main()
