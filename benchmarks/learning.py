"""Do the presets learn? Every preset on several seeds, evaluated on 20 deterministic episodes.

    python benchmarks/learning.py [--presets cartpole pendulum] [--seeds 0 1 2 3 4]

Without `--presets` these are the quick ones; those of MuJoCo take minutes to hours each.
Prints a table and writes `results/learning.csv`, a row per run as it ends. Rows that are there
already are not run again; `--fresh` begins anew.
"""

import argparse
import os
import statistics
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from batchppo_cli.presets import PRESETS
from batchppo_cli.wrappers import load_wrapper
from gymnasium.vector import AutoresetMode
from result_rows import append, read

import batchgym
from batchppo import BatchPPO, evaluate_policy

RESULTS = Path(__file__).parent / "results" / "learning.csv"
COLUMNS = ("preset", "seed", "steps", "seconds", "mean", "std", "goal")
QUICK = ["pendulum", "cartpole", "pendulum-2017", "cartpole-2017"]
EPISODES = 20
EVALUATION_SEED = 10_000


def run(name, seed):
    """Trains one preset with one seed and returns its row."""
    preset = PRESETS[name]
    wrappers = [load_wrapper(text) for text in preset.wrappers]
    began = time.perf_counter()
    env = batchgym.make_vec(
        preset.env_id, preset.num_envs, wrappers=wrappers, autoreset_mode=AutoresetMode.SAME_STEP
    )
    agent = BatchPPO(env=env, seed=seed, **{"policy": "MlpPolicy", **preset.agent})
    agent.learn(preset.total_timesteps)
    seconds = time.perf_counter() - began
    env.close()
    env = batchgym.make_vec(preset.env_id, EPISODES, wrappers=wrappers)
    mean, std = evaluate_policy(agent, env, EPISODES, deterministic=True, seed=EVALUATION_SEED)
    env.close()
    numbers = (agent.num_timesteps, f"{seconds:.1f}", f"{mean:.2f}", f"{std:.2f}", _goal(preset))
    return dict(zip(COLUMNS, (name, seed, *numbers), strict=True))


def _goal(preset):
    return "" if preset.goal is None else preset.goal


def report(presets):
    """Prints the results, a line per preset and seed and a line that sums each preset up."""
    print(f"{'preset':<15}{'seed':>5}{'steps':>10}{'seconds':>9}{'mean':>10}{'std':>9}{'goal':>8}")
    for name in presets:
        found = [row for row in read(RESULTS) if row["preset"] == name]
        for row in found:
            print(
                f"{name:<15}{row['seed']:>5}{row['steps']:>10}{row['seconds']:>9}{row['mean']:>10}"
                f"{row['std']:>9}{row['goal']:>8}"
            )
        if not found:
            continue
        seconds = statistics.median(float(row["seconds"]) for row in found)
        with_goal = [row for row in found if row["goal"]]
        reached = sum(float(row["mean"]) >= float(row["goal"]) for row in with_goal)
        result = f"{reached} of {len(with_goal)} reached the goal" if with_goal else "no goal"
        print(f"{name}: {result}; median {seconds:.1f} s\n")


def main():
    """Runs what is missing, then reports."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--presets", nargs="+", default=QUICK, choices=list(PRESETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    arguments = parser.parse_args()
    if arguments.fresh:
        RESULTS.unlink(missing_ok=True)
    done = {(row["preset"], int(row["seed"])) for row in read(RESULTS)}
    for name in arguments.presets:
        for seed in arguments.seeds:
            if (name, seed) not in done:
                append(RESULTS, run(name, seed))
    report(arguments.presets)


if __name__ == "__main__":
    main()
