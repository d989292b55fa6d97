"""How fast trainings are on this machine."""

import dataclasses
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.text import Text

import batchppo
from batchppo.callbacks import BaseCallback

from .build import closing, make_agent, make_training_env
from .console import messages, results
from .run_config import RunConfig
from .tables import print_rows

_PARTS = ("environment", "acting", "update")
# The first rollout is collected while the update is compiled, and the second may still warm caches.
_WARM_UP_ROLLOUTS = 2
_MEASURED_ROLLOUTS = 3
# Measurements of a few seconds differ by as much.
_ABOUT = 0.9


@dataclass(frozen=True)
class Speed:
    """How fast one training was.

    Attributes:
        num_envs: Environments in parallel.
        num_workers: Worker processes; None for what `train` does by default.
        steps_per_second: Environment steps a second.
        shares: Fractions of the time that environments, acting and updates took.
    """

    num_envs: int
    num_workers: int | None
    steps_per_second: float
    shares: Mapping[str, float]


def measure_all(
    base: RunConfig, env_counts: Sequence[int], worker_counts: Sequence[int], seconds: float
) -> list[Speed]:
    """Train for a short while with each combination of numbers of environments and workers."""
    workers = tuple(worker_counts) or (None, 0)
    console = messages()
    speeds = []
    with console.status("Starting TensorFlow ...") as status:
        for num_envs in env_counts:
            for num_workers in dict.fromkeys(workers):
                status.update(f"{num_envs} environments, workers: {_name(num_workers)} ...")
                config = dataclasses.replace(base, num_envs=num_envs, num_workers=num_workers)
                speeds.append(_measure(config, num_workers, seconds))
    return speeds


def recommended(speeds: Sequence[Speed]) -> Speed:
    """Return the one with the fewest environments that is about the fastest.

    Among equals what `train` does by default is preferred, then fewer workers.
    """
    enough = _ABOUT * max(speed.steps_per_second for speed in speeds)
    return min(
        (speed for speed in speeds if speed.steps_per_second >= enough),
        key=lambda speed: (speed.num_envs, -1 if speed.num_workers is None else speed.num_workers),
    )


def show(task: str, speeds: Sequence[Speed], as_json: bool) -> None:
    """Print the speeds: a table for people, JSON for programs."""
    console = results()
    best = recommended(speeds)
    if as_json:
        document = {"speeds": [asdict(speed) for speed in speeds], "recommended": asdict(best)}
        console.out(json.dumps(document, indent=2), highlight=False)
        return
    print_rows(console, [_row(speed, is_best=speed is best) for speed in speeds])
    workers = "" if best.num_workers is None else f" --num-workers {best.num_workers}"
    command = f"batchppo train {task} --num-envs {best.num_envs}{workers}"
    console.print(f"\nrecommended\n  {command}", soft_wrap=True)


def _row(speed: Speed, is_best: bool) -> dict[str, Text]:
    cells = {
        "environments": str(speed.num_envs),
        "workers": _name(speed.num_workers),
        "steps/s": f"{speed.steps_per_second:,.0f}",
        **{part: f"{100 * speed.shares[part]:.0f} %" for part in _PARTS},
    }
    return {heading: Text(cell, "bold" if is_best else "") for heading, cell in cells.items()}


def _name(num_workers: int | None) -> str:
    return "default" if num_workers is None else str(num_workers)


def _measure(config: RunConfig, num_workers: int | None, seconds: float) -> Speed:
    with closing(make_training_env(config)) as env:
        agent = make_agent(config, env, None)
        figures = _Figures()
        agent.set_logger(batchppo.Logger(None, [figures]))
        agent.learn(10**12, callback=_StopAfter(seconds))
    measured = figures.rows[_WARM_UP_ROLLOUTS:]
    first = figures.rows[_WARM_UP_ROLLOUTS - 1]
    spent = {part: sum(row[f"time/{part}"] for row in measured) for part in _PARTS}
    total = sum(spent.values())
    steps = measured[-1]["time/total_timesteps"] - first["time/total_timesteps"]
    shares = {part: value / total for part, value in spent.items()}
    return Speed(config.num_envs, num_workers, steps / total, shares)


class _Figures:
    """A log output that keeps everything."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def write(self, figures: Mapping[str, Any], step: int) -> None:  # noqa: ARG002 - the protocol
        self.rows.append(dict(figures))

    def close(self) -> None:
        return


class _StopAfter(BaseCallback):
    """Ends the training so many seconds after the warm-up, and a few rollouts after it at least."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds
        self._rollouts = 0
        self._deadline = float("inf")

    def _on_rollout_start(self) -> None:
        self._rollouts += 1
        if self._rollouts == _WARM_UP_ROLLOUTS + 1:
            self._deadline = time.monotonic() + self._seconds

    def _on_step(self) -> bool:
        is_enough = self._rollouts > _WARM_UP_ROLLOUTS + _MEASURED_ROLLOUTS
        return not (is_enough and time.monotonic() > self._deadline)
