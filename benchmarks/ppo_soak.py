"""Does training keep its speed and its memory? 1,000 iterations of CartPole-v1 8x128.

    python benchmarks/ppo_soak.py [--iterations 1000]

Writes a row for each twentieth of them to results/ppo_soak.csv: the seconds that it took, and the
resident memory of the process and its workers after it.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from ppo_process import CandidateProcess
from ppo_settings import OURS, SETTINGS
from result_rows import append

RESULTS = Path(__file__).parent / "results" / "ppo_soak.csv"
PARTS = 20


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=1000)
    arguments = parser.parse_args()
    share = max(1, arguments.iterations // PARTS)
    RESULTS.unlink(missing_ok=True)
    setting = SETTINGS["CartPole-v1 8x128"]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with CandidateProcess(OURS, setting, sys.executable, log) as candidate:
            candidate.warm_up([])
            for part in range(1, PARTS + 1):
                done, seconds = candidate.do("train", share)
                row = {
                    "iterations": part * share,
                    "steps_per_second": round(done / seconds),
                    "memory_mb": f"{candidate.memory():.1f}",
                }
                append(RESULTS, row)
                print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)


if __name__ == "__main__":
    main()
