"""Where an iteration's time goes, for each setting of `ppo.py`.

    python benchmarks/ppo_profile.py [--iterations 10] [--only "Cart"] [--functions 25]

Prints the log's own split (`time/environment`, `time/acting`, `time/update`) and what is left over
(`bookkeeping`: encoding, storing, statistics), and writes it to results/ppo_profile.csv. With
`--functions` it also lists the Python functions that an iteration spends its time in. Python's
profiler slows calls down, so read the order and the numbers of calls there, not the seconds.
"""

import argparse
import cProfile
import os
import pstats
import statistics
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from ppo_candidate import Ours
from ppo_settings import SETTINGS
from result_rows import replace

from batchppo.logger import Logger

RESULTS = Path(__file__).parent / "results" / "ppo_profile.csv"
PARTS = ("environment", "acting", "update")


class Splits:
    """A logger's output that keeps each iteration's split."""

    def __init__(self):
        self.rows = []
        self._last = time.perf_counter()

    def write(self, figures, step):
        now = time.perf_counter()
        row = {part: figures[f"time/{part}"] for part in PARTS}
        row["iteration"], self._last = now - self._last, now
        row["bookkeeping"] = row["iteration"] - sum(row[part] for part in PARTS)
        self.rows.append(row)

    def close(self):
        pass


def split(setting, candidate, iterations):
    """Returns a row: milliseconds of an iteration's parts, medians over iterations."""
    splits = Splits()
    candidate.model.set_logger(Logger(None, [splits]))
    candidate.train(iterations + 1)
    rows = splits.rows[1:]  # the first one counts from the logger's birth
    medians = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
    steps = setting.rows / medians["iteration"]
    milliseconds = {key: f"{1000 * value:.2f}" for key, value in medians.items()}
    return {
        "setting": setting.name,
        "steps_per_second": round(steps),
        "calls_per_vector_step": "",
        **{f"{key}_ms": value for key, value in milliseconds.items()},
    }


def functions(candidate, iterations, count, setting):
    """Prints the functions with the most time of their own; returns calls per vector step."""
    profile = cProfile.Profile()
    profile.runcall(candidate.train, iterations)
    stats = pstats.Stats(profile)
    if count:
        stats.sort_stats("tottime").print_stats(count)
    return stats.total_calls / (iterations * setting.n_steps)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--only", default="", help="part of the names of the settings to measure")
    parser.add_argument("--functions", type=int, default=0, help="how many functions to list")
    arguments = parser.parse_args()
    chosen = {name: one for name, one in SETTINGS.items() if arguments.only in name}
    rows = []
    for setting in chosen.values():
        candidate = Ours(setting)
        candidate.train(3)
        row = split(setting, candidate, arguments.iterations)
        calls = functions(candidate, 3, arguments.functions, setting)
        row["calls_per_vector_step"] = f"{calls:.0f}"
        candidate.close()
        print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
        rows.append(row)
    replace(RESULTS, rows, "setting", SETTINGS)


if __name__ == "__main__":
    main()
