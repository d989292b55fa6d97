"""How the speed of training changes as work grows.

    python benchmarks/scaling.py [--seconds 1.0] [--rounds 3] [--only environments]

From 8 to 1,024 environments, from 64 to 1,024 units in each of two layers, and from 4 to 100,000
numbers in an observation. Prints a table and writes results/scaling.csv and, where Matplotlib is
installed (`batchppo[plot]`), results/scaling.png. Rows that are there are not measured again unless
`--fresh` is given.
"""

import argparse
import importlib.util
import statistics
import sys
import tempfile
from pathlib import Path

from ppo_process import CandidateProcess
from ppo_settings import OURS, Setting
from result_rows import append, read

RESULTS = Path(__file__).parent / "results" / "scaling.csv"
GROWING = {
    "environments": (8, 16, 32, 64, 128, 256, 512, 1024),
    "width": (64, 128, 256, 512, 1024),
    "observation": (4, 32, 256, 2048, 16384, 100_000),
}


def setting_of(what, size):
    """Returns the setting in which one thing is of that size, and the others are small."""
    env_id = "CartPole-v1" if what != "observation" else "Numbers-v0"
    num_envs = size if what == "environments" else 8
    return Setting(
        name=f"{what} {size}",
        env_id=env_id,
        num_envs=num_envs,
        n_steps=128,
        batch_size=32 * num_envs,
        n_epochs=10,
        width=size if what == "width" else 64,
        observation=size if what == "observation" else 4,
    )


def measure(what, size, rounds, seconds):
    """Returns the row of one size."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with CandidateProcess(OURS, setting_of(what, size), sys.executable, log) as candidate:
            candidate.warm_up(["train"])
            rates = [candidate.rate("train", seconds) for _ in range(rounds)]
            memory = candidate.memory()
    return {
        "what": what,
        "size": size,
        "steps_per_second": round(statistics.median(rates)),
        "slowest": round(min(rates)),
        "fastest": round(max(rates)),
        "memory_mb": round(memory),
        "first_iteration_seconds": f"{candidate.first_seconds:.1f}",
    }


def draw(rows):
    """Draws steps a second over each size."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(GROWING), figsize=(11, 3.2), layout="constrained")
    for axis, what in zip(axes, GROWING, strict=True):
        found = [row for row in rows if row["what"] == what]
        sizes = [int(row["size"]) for row in found]
        axis.plot(sizes, [int(row["steps_per_second"]) for row in found], marker="o")
        axis.set(xscale="log", yscale="log", xlabel=what, ylabel="steps/s")
        axis.grid(which="both", alpha=0.3)
    figure.savefig(RESULTS.with_suffix(".png"), dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one round")
    parser.add_argument("--only", choices=list(GROWING), help="measure one of them")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    arguments = parser.parse_args()
    if arguments.fresh:
        RESULTS.unlink(missing_ok=True)
    done = {(row["what"], int(row["size"])) for row in read(RESULTS)}
    for what, sizes in GROWING.items():
        if arguments.only in (None, what):
            for size in sizes:
                if (what, size) not in done:
                    append(RESULTS, measure(what, size, arguments.rounds, arguments.seconds))
    rows = sorted(
        read(RESULTS), key=lambda row: (list(GROWING).index(row["what"]), int(row["size"]))
    )
    for row in rows:
        print("  ".join(f"{key} {value}" for key, value in row.items()))
    if importlib.util.find_spec("matplotlib"):
        draw(rows)


if __name__ == "__main__":
    main()
