"""Speed of training against Stable-Baselines3, SBX and sb3-contrib.

    python benchmarks/ppo.py [--rounds 9] [--seconds 0.7] [--budget 90] [--only "Cart"]

Every library does the same work: the same environments, networks (tanh, two layers of 64 for the
policy and two for the value), steps, minibatches and epochs, without normalization, on the CPU.
Each lives in a process of its own. Since virtual machines change their speed for seconds at a
time, by half and more, the candidates take turns in short slices while the others wait; ratios are
taken within a round, and the median over the rounds is reported. Compilation and first iterations
come before and are reported apart. PyTorch gets the faster of one thread and one per core.

`update` is an update from a rollout by itself (for BatchPPO with everything that comes between a
rollout and the next: old values, advantages, minibatches), `predict` a call for one observation.

The peers are installed into an environment of their own, see `--peers-env`; what is missing there
is left out. Rows go to results/ppo.csv as settings are finished; settings that are there already
are not measured again unless `--fresh` is given.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from ppo_peers import default_folder, installed, peers_python
from ppo_process import CandidateError, CandidateProcess
from ppo_settings import OURS, SETTINGS
from result_rows import read, replace
from vector_env import QUIET, Others, calibrate

RESULTS = Path(__file__).parent / "results" / "ppo.csv"


def start(setting, pythons, stack):
    """Starts a setting's candidates one after the other; returns those that came up."""
    logs = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    started = []
    for name, python in pythons.items():
        try:
            candidate = CandidateProcess(name, setting, python, logs / name)
            stack.enter_context(candidate)
            candidate.warm_up([w for w, peers in setting.targets.items() if name in (OURS, *peers)])
        except CandidateError as error:
            print(f"without {name}: {error}", file=sys.stderr)
            continue
        started.append(candidate)
        print(
            f"  {name:14} ready after {candidate.start_seconds:5.1f} s, first iteration "
            f"{candidate.first_seconds:5.1f} s"
            + (f", {candidate.threads} threads of PyTorch" if candidate.threads else ""),
            flush=True,
        )
    return started


def take_turns(candidates, work, rounds, seconds, budget):
    """Lets candidates work in turns until enough rounds were undisturbed, or time is up.

    Returns:
        Of the quietest rounds: (cores that others took, calibration, rates by candidate).
    """
    found = []
    end = time.perf_counter() + budget
    while not found or (
        time.perf_counter() < end and sum(one[0] < QUIET for one in found) < rounds
    ):
        others, calibration, rates = Others(), calibrate(), {}
        first = len(found) % len(candidates)
        for candidate in (*candidates[first:], *candidates[:first]):
            waiting = [one for one in candidates if one is not candidate]
            before = [one.cpu_seconds() for one in waiting]
            rates[candidate.name] = candidate.rate(work, seconds)
            for one, then in zip(waiting, before, strict=True):
                one.idle_seconds += one.cpu_seconds() - then
        found.append((others.since_last(), calibration, rates))
    return sorted(found, key=lambda one: one[0])[:rounds]


def rows_of(setting, work, candidates, found, wall):
    """Returns a row for each candidate, ours first."""
    calibration = [one[1] for one in found]
    rows = []
    for candidate in candidates:
        rates = [one[2][candidate.name] for one in found]
        ratios = [one[2][OURS] / rate for one, rate in zip(found, rates, strict=True)]
        rows.append(
            {
                "setting": setting.name,
                "work": work,
                "candidate": candidate.name,
                "per_second": f"{statistics.median(rates):.5g}",
                "batchppo_ratio": f"{statistics.median(ratios):.3f}",
                "ratio_min": f"{min(ratios):.3f}",
                "ratio_max": f"{max(ratios):.3f}",
                "target": setting.targets[work].get(candidate.name) or "",
                "start_seconds": f"{candidate.start_seconds:.1f}",
                "first_iteration_seconds": f"{candidate.first_seconds:.1f}",
                "torch_threads": candidate.threads or "",
                "idle_cores": f"{candidate.idle_seconds / wall:.3f}",
                "rounds": len(found),
                "calibration_ms_min": f"{min(calibration):.2f}",
                "calibration_ms_max": f"{max(calibration):.2f}",
                "others_cores_max": f"{max(one[0] for one in found):.2f}",
            }
        )
    return rows


def measure(setting, pythons, arguments):
    """Runs a setting's candidates in turns, for each kind of work; returns their rows."""
    print(f"\n{setting.name}", flush=True)
    rows = []
    with ExitStack() as stack:
        candidates = start(setting, pythons, stack)
        if OURS not in [candidate.name for candidate in candidates]:
            return rows
        for work, targets in setting.targets.items():
            chosen = [one for one in candidates if one.name in (OURS, *targets)]
            for candidate in chosen:
                candidate.idle_seconds = 0.0
            budget = arguments.budget if work == "train" else arguments.budget / 4
            began = time.perf_counter()
            found = take_turns(chosen, work, arguments.rounds, arguments.seconds, budget)
            rows += rows_of(setting, work, chosen, found, time.perf_counter() - began)
    return rows


def show(rows):
    """Prints rows, grouped by setting and work."""
    group = None
    for row in rows:
        if group != (row["setting"], row["work"]):
            group = row["setting"], row["work"]
            print(
                f"\n{row['setting']}, {row['work']}: {row['rounds']} rounds; calibration "
                f"{row['calibration_ms_min']} to {row['calibration_ms_max']} ms; other processes "
                f"took up to {row['others_cores_max']} cores"
            )
        line = f"  {row['candidate']:14}{float(row['per_second']):>10,.0f} /s"
        if row["candidate"] != OURS:
            ratio = float(row["batchppo_ratio"])
            line += f"   batchppo is {ratio:5.2f} times as fast"
            line += f" ({float(row['ratio_min']):.2f} to {float(row['ratio_max']):.2f})"
            if row["target"]:
                verdict = "reached" if ratio >= float(row["target"]) else "MISSED"
                line += f"; wanted {float(row['target']):g}: {verdict}"
        print(f"{line}   idle {float(row['idle_cores']):.3f} cores")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.7, help="of one slice")
    parser.add_argument("--budget", type=float, default=90.0, help="seconds per setting")
    parser.add_argument("--only", default="", help="part of the names of the settings to measure")
    parser.add_argument("--candidates", nargs="+", help="the peers to measure, by default all")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there already")
    parser.add_argument(
        "--peers-env",
        type=Path,
        default=default_folder(),
        metavar="DIR",
        help="the peers' environment, made if missing (%(default)s)",
    )
    arguments = parser.parse_args()
    done = set() if arguments.fresh else {row["setting"] for row in read(RESULTS)}
    chosen = [one for name, one in SETTINGS.items() if arguments.only in name and name not in done]
    peers = list(dict.fromkeys(peer for s in chosen for w in s.targets.values() for peer in w))
    peers = [peer for peer in peers if not arguments.candidates or peer in arguments.candidates]
    if peers:
        python = peers_python(arguments.peers_env)
        peers = installed(python, peers)
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}")
    for setting in chosen:
        wanted = {peer for work in setting.targets.values() for peer in work}
        pythons = {OURS: sys.executable, **{p: python for p in peers if p in wanted}}
        rows = measure(setting, pythons, arguments)
        if rows:
            replace(RESULTS, rows, "setting", SETTINGS)
            show(rows)


if __name__ == "__main__":
    main()
