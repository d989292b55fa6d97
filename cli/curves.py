"""Learning curves of runs, put together over seeds."""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .confidence import bootstrap_interval
from .logged import Array, read_metric
from .run_config import RunConfig
from .run_folder import RunFolder, find_runs

_POINTS = 200
# Settings that change nothing of what an agent learns; several seeds make one curve.
_WITHOUT_INFLUENCE = ("seed", "num_workers", "eval_every", "eval_episodes", "checkpoint_every")


@dataclass(frozen=True)
class Curve:
    """A metric over the steps of training, of one run or of several that differ in their seed.

    Attributes:
        task: What was trained on.
        label: How many runs there are, and what sets them apart from the others of the task.
        steps: Environment steps, shape [points].
        mean: Mean of the metric, shape [points].
        interval: Bounds of the mean, shape [2, points]; None for one run.
    """

    task: str
    label: str
    steps: Array
    mean: Array
    interval: Array | None


def load_curves(names: Iterable[str], logdir: Path, metric: str) -> list[Curve]:
    """Return the curves of all runs that the names mean.

    Args:
        names: Run folders and tasks.
        logdir: Where run folders are.
        metric: Column of `progress.csv`.

    Raises:
        BadInput: There is no such run, or it did not log the metric.
    """
    runs = {run.path.resolve(): run for name in names for run in find_runs(name, logdir)}
    groups: dict[str, list[tuple[RunConfig, RunFolder]]] = {}
    for run in runs.values():
        config = RunConfig.load(run.config)
        groups.setdefault(json.dumps(_flat(config), sort_keys=True), []).append((config, run))
    firsts = [group[0][0] for group in groups.values()]
    return [_curve(group, firsts, metric) for group in groups.values()]


def _curve(group: list[tuple[RunConfig, RunFolder]], firsts: list[RunConfig], metric: str) -> Curve:
    config = group[0][0]
    series = [read_metric(run.progress, metric) for _, run in group]
    # Only steps that all runs have reached: a mean over fewer and fewer runs would mislead.
    begin, end = max(steps[0] for steps, _ in series), min(steps[-1] for steps, _ in series)
    steps = np.linspace(begin, end, _POINTS)
    values = np.stack([np.interp(steps, *points) for points in series])
    rivals = [other for other in firsts if other.task == config.task and other is not config]
    count = f"{len(group)} {_kind(group)}" if len(group) > 1 else f"seed {config.seed}"
    return Curve(
        task=config.task,
        label=", ".join([*_differences(config, rivals), count]),
        steps=steps,
        mean=values.mean(axis=0),
        interval=bootstrap_interval(values) if len(group) > 1 else None,
    )


def _kind(group: list[tuple[RunConfig, RunFolder]]) -> str:
    return "seeds" if len({config.seed for config, _ in group}) == len(group) else "runs"


def _differences(config: RunConfig, rivals: list[RunConfig]) -> list[str]:
    """Return the settings in which a run differs from others of the same task."""
    others = [_flat(rival) for rival in rivals]
    return [
        f"{key.rpartition('.')[2]} {f'{value:,}' if type(value) is int else value}"
        for key, value in _flat(config).items()
        if any(other.get(key) != value for other in others)
    ]


def _flat(config: RunConfig) -> dict[str, object]:
    """Return the settings of a run that may change what is learned, but for the seed."""
    settings = dataclasses.asdict(config)
    for name in _WITHOUT_INFLUENCE:
        settings.pop(name)
    agent = settings.pop("agent")  # first: what people compare most often
    return dict(_leaves({"agent": agent, **settings}, ""))


def _leaves(settings: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
