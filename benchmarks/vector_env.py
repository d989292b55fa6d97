"""Speed of ProcessVectorEnv against other vector environments.

    python benchmarks/vector_env.py [--rounds 7] [--seconds 0.2] [--budget 20] [--only "Cart"]

Virtual machines change their speed for seconds at a time, by half and more. So the candidates take
turns in short slices, ratios are taken within a round, and the median over the rounds is reported.
`limit` is the bare loop of as many processes as there are workers, running at the same time: what
the same cores can do without any vector environment. `floor` is the barest vector environment with
worker processes, see bare_workers.py: what starting a step and waiting for its end cost by
themselves. `owner` is batchgym with a share of the environments in the owner (`owner_steps`). The
calibration line shows how much the speed of the machine varied meanwhile. Rounds in which other
processes took more than a tenth of a core are repeated as long as there is time.
Results are written to results/vector_env.csv.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import multiprocessing
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import psutil
from bare_workers import BareWorkers
from cheap_envs import Images
from result_rows import replace

import batchgym

WORKERS = 2
QUIET = 0.1
RESULTS = Path(__file__).parent / "results"
CASES = {
    "CartPole-v1 x64": ("CartPole-v1", 64),
    "CartPole-v1 x8": ("CartPole-v1", 8),
    "CartPole-v1 x1024": ("CartPole-v1", 1024),
    "HalfCheetah-v5 x64": ("HalfCheetah-v5", 64),
    "HalfCheetah-v5 x8": ("HalfCheetah-v5", 8),
    "images 84x84x4 x16": ("Images-v0", 16),
}
Slice = Callable[[float], float]


def make_env(env_id: str) -> gym.Env:
    return gym.make(env_id, disable_env_checker=True)


@contextmanager
def vector_slice(env: Any) -> Iterator[Slice]:
    """Steps a Gymnasium vector environment with actions drawn beforehand."""
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(16)]
    env.reset(seed=0)
    with stepping(env, actions) as run:
        yield run


@contextmanager
def stepping(env: Any, actions: list[Any]) -> Iterator[Slice]:
    """Steps whatever has `step`, `num_envs` and `close`."""

    def run(seconds: float) -> float:
        steps, start = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - start) < seconds:
            env.step(actions[steps % 16])
            steps += 1
        return steps * env.num_envs / elapsed

    run(0.05)
    yield run
    env.close()


def bare_loop(env_id: str, num_envs: int, connection: Any) -> None:
    """What a worker's share of the environments costs without a vector environment."""
    envs = [make_env(env_id) for _ in range(num_envs)]
    actions = []
    for env in envs:
        env.reset(seed=0)
        actions.append(env.action_space.sample())
    connection.send(None)
    while (seconds := connection.recv()) is not None:
        steps, start = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - start) < seconds:
            for env, action in zip(envs, actions, strict=True):
                _, _, terminated, truncated, _ = env.step(action)
                if terminated or truncated:
                    env.reset()
            steps += 1
        connection.send(steps * num_envs / elapsed)


@contextmanager
def limit_slice(env_id: str, num_envs: int) -> Iterator[Slice]:
    """Bare loops in `WORKERS` processes at the same time."""
    context = multiprocessing.get_context("fork")
    pipes = []
    for _ in range(WORKERS):
        ours, theirs = context.Pipe()
        share = num_envs // WORKERS
        context.Process(target=bare_loop, args=(env_id, share, theirs), daemon=True).start()
        ours.recv()
        pipes.append(ours)

    def run(seconds: float) -> float:
        for pipe in pipes:
            pipe.send(seconds)
        return sum(pipe.recv() for pipe in pipes)

    yield run
    for pipe in pipes:
        pipe.send(None)


@contextmanager
def sb3_slice(env_id: str, num_envs: int) -> Iterator[Slice]:
    """Stable-Baselines3's SubprocVecEnv: one process per environment."""
    from stable_baselines3.common.vec_env import SubprocVecEnv

    env = SubprocVecEnv([functools.partial(make_env, env_id)] * num_envs, start_method="fork")
    actions = [np.array([env.action_space.sample() for _ in range(num_envs)]) for _ in range(16)]
    env.reset()
    with stepping(env, actions) as run:
        yield run


@contextmanager
def envpool_slice(env_id: str, num_envs: int) -> Iterator[Slice]:
    """EnvPool: environments in C++, in threads."""
    import envpool

    env = envpool.make_gymnasium(env_id, num_envs=num_envs, num_threads=WORKERS)
    env.num_envs = num_envs
    actions = [np.array([env.action_space.sample() for _ in range(num_envs)]) for _ in range(16)]
    env.reset()
    with stepping(env, actions) as run:
        yield run


def has_envpool(env_id: str) -> bool:
    """Says whether EnvPool is installed and has this environment."""
    if importlib.util.find_spec("envpool") is None:
        return False
    import envpool

    return env_id in envpool.list_all_envs()


def candidates(env_id: str, num_envs: int) -> dict[str, Any]:
    """Returns what is compared: name to context manager."""
    fns = [functools.partial(make_env, env_id)] * num_envs
    found = {
        "batchgym": lambda: vector_slice(batchgym.make_vec(env_id, num_envs, num_workers=WORKERS)),
        "owner": lambda: vector_slice(
            batchgym.make_vec(env_id, num_envs, num_workers=WORKERS - 1, owner_steps=True)
        ),
        "sync": lambda: vector_slice(gym.vector.SyncVectorEnv(fns)),
        "limit": lambda: limit_slice(env_id, num_envs),
    }
    if env_id != "Images-v0":
        found["floor"] = lambda: vector_slice(BareWorkers(env_id, num_envs, WORKERS))
    if num_envs <= 64:
        found["async"] = lambda: vector_slice(gym.vector.AsyncVectorEnv(fns))
    if env_id == "CartPole-v1":
        found["native"] = lambda: vector_slice(
            gym.make_vec(env_id, num_envs=num_envs, vectorization_mode="vector_entry_point")
        )
    if num_envs <= 64 and all(map(importlib.util.find_spec, ("stable_baselines3", "torch"))):
        found["sb3"] = lambda: sb3_slice(env_id, num_envs)
    if has_envpool(env_id):
        found["envpool"] = lambda: envpool_slice(env_id, num_envs)
    return found


def calibrate() -> float:
    """Milliseconds for a fixed amount of pure Python."""
    start = time.perf_counter()
    for _ in range(200_000):
        pass
    return (time.perf_counter() - start) * 1000


class Others:
    """Processor time that other processes of the machine take, in cores."""

    def __init__(self) -> None:
        self._tick = os.sysconf("SC_CLK_TCK")
        self._last = self._read()

    def _read(self) -> tuple[float, float]:
        fields = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
        busy = (sum(fields[:8]) - fields[3] - fields[4]) / self._tick
        this = psutil.Process()
        own = sum(
            sum(process.cpu_times()[:2]) for process in (this, *this.children(recursive=True))
        )
        return time.perf_counter(), busy - own

    def since_last(self) -> float:
        (then, before), self._last = self._last, self._read()
        return (self._last[1] - before) / (self._last[0] - then)


def quiet_rounds(
    runs: dict[str, Slice], rounds: int, seconds: float, budget: float
) -> tuple[list[dict[str, float]], list[float], list[float]]:
    """Lets the candidates take turns until enough rounds were undisturbed, or time is up.

    Returns:
        Of the quietest rounds: rates, calibrations, and the cores that others took.
    """
    found: list[tuple[float, float, dict[str, float]]] = []
    end = time.perf_counter() + budget
    while time.perf_counter() < end and sum(one[0] < QUIET for one in found) < rounds:
        others = Others()
        calibration = calibrate()
        rates = {name: run(seconds) for name, run in runs.items()}
        found.append((others.since_last(), calibration, rates))
    best = sorted(found, key=lambda one: one[0])[:rounds]
    return [one[2] for one in best], [one[1] for one in best], [one[0] for one in best]


def measure(case: str, rounds: int, seconds: float, budget: float) -> list[dict[str, Any]]:
    """Runs the candidates of a case in turns; returns one row each."""
    env_id, num_envs = CASES[case]
    with ExitStack() as stack:
        runs = {
            name: stack.enter_context(make()) for name, make in candidates(env_id, num_envs).items()
        }
        found, calibration, others = quiet_rounds(runs, rounds, seconds, budget)
    rates = {name: [one[name] for one in found] for name in found[0]}
    print(
        f"\n{case}: {len(found)} rounds of {seconds} s each; calibration "
        f"{min(calibration):.1f} to {max(calibration):.1f} ms; other processes took "
        f"{min(others):.2f} to {max(others):.2f} cores"
    )
    rows = []
    for name, values in rates.items():
        ratios, owner_ratios = (
            [ours / other for ours, other in zip(rates[name], values, strict=True)]
            for name in ("batchgym", "owner")
        )
        rows.append(
            {
                "case": case,
                "candidate": name,
                "steps_per_second": round(statistics.median(values)),
                "batchgym_ratio": round(statistics.median(ratios), 3),
                "ratio_min": round(min(ratios), 3),
                "ratio_max": round(max(ratios), 3),
                "owner_ratio": round(statistics.median(owner_ratios), 3),
                "calibration_ms_min": round(min(calibration), 2),
                "calibration_ms_max": round(max(calibration), 2),
                "others_cores_max": round(max(others), 2),
            }
        )
        print(
            f"  {name:9} {rows[-1]['steps_per_second']:>9,} steps/s   batchgym is "
            f"{rows[-1]['batchgym_ratio']:.2f} times as fast "
            f"({rows[-1]['ratio_min']:.2f} to {rows[-1]['ratio_max']:.2f}), with a share in the "
            f"owner {rows[-1]['owner_ratio']:.2f}"
        )
    return rows


def pss_megabytes(pid: int) -> float:
    """Memory of a process, shared pages divided among those who share them."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the kernel does not report Pss")


def cpu_seconds(pids: list[int]) -> float:
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measure_resources() -> list[dict[str, Any]]:
    """Memory of a worker; processor time while nothing happens, and while one step takes long."""
    rows = []
    for name, loads in (("plain owner", False), ("owner with TensorFlow", True)):
        if loads and importlib.util.find_spec("tensorflow") is None:
            continue
        if loads:
            os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
            import tensorflow  # noqa: F401
        env = batchgym.make_vec("CartPole-v1", 8, num_workers=WORKERS)
        env.reset()
        env.step(env.action_space.sample())
        memory = max(pss_megabytes(process.pid) for process in env.processes)
        rows.append({"case": f"memory per worker (Pss, MB), {name}", "value": round(memory, 1)})
        env.close()
    env = batchgym.ProcessVectorEnv([SlowEnv] * 2, num_workers=WORKERS)
    pids = [process.pid for process in env.processes]
    env.reset()
    for case, wait in (("idle", time.sleep), ("waiting for a step", lambda _: env.step([0, 0]))):
        workers, owner = cpu_seconds(pids), time.process_time()
        wait(2.0)
        rows += [
            {
                "case": f"CPU of the workers while {case} (% of a core)",
                "value": round((cpu_seconds(pids) - workers) * 50, 2),
            },
            {
                "case": f"CPU of the owner while {case} (% of a core)",
                "value": round((time.process_time() - owner) * 50, 2),
            },
        ]
    env.close()
    for row in rows:
        print(f"{row['case']:60} {row['value']}")
    return rows


class SlowEnv(Images):
    """Two seconds a step, spent asleep."""

    def step(self, action):
        time.sleep(2.0)
        return super().step(action)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--budget", type=float, default=20.0, help="seconds per case")
    parser.add_argument("--only", help="part of the names of the cases to measure")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{os.cpu_count()} cores, {WORKERS} workers, Python {sys.version.split()[0]}")
    cases = [case for case in CASES if not arguments.only or arguments.only in case]
    rows = [
        row
        for case in cases
        for row in measure(case, arguments.rounds, arguments.seconds, arguments.budget)
    ]
    replace(RESULTS / "vector_env.csv", rows, "case", CASES)
    if not arguments.only:
        print()
        replace(RESULTS / "vector_env_resources.csv", measure_resources(), "case", ())


if __name__ == "__main__":
    main()
