"""What a training leaves behind: its evaluations, and what became of it."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .confidence import bootstrap_interval
from .errors import BadInput
from .files import write_text


@dataclass(frozen=True)
class Evaluation:
    """The result of one evaluation.

    Attributes:
        timesteps: Environment steps that the agent was trained for.
        returns: Return of each episode.
        lengths: Steps of each episode.
    """

    timesteps: int
    returns: tuple[float, ...]
    lengths: tuple[int, ...]

    @property
    def mean(self) -> float:
        """Mean return."""
        return float(np.mean(self.returns))

    @property
    def std(self) -> float:
        """Standard deviation of the returns."""
        return float(np.std(self.returns))

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds that hold the mean return with 95 % confidence."""
        low, high = bootstrap_interval(self.returns)
        return float(low), float(high)


@dataclass(frozen=True)
class Outcome:
    """What became of a training.

    Attributes:
        task: What was trained on.
        folder: The run folder.
        seed: Seed of the run.
        timesteps: Environment steps of the agent in the end.
        seconds: How long the training took, evaluations included, start-up not.
        steps_per_second: Environment steps of this training by its seconds.
        evaluations: All evaluations, in order.
        exit_code: 0, or that of the signal that ended the training before its time.
    """

    task: str
    folder: Path
    seed: int
    timesteps: int
    seconds: float
    steps_per_second: float
    evaluations: tuple[Evaluation, ...]
    exit_code: int

    @property
    def last(self) -> Evaluation | None:
        """The last evaluation."""
        return self.evaluations[-1] if self.evaluations else None

    @property
    def best(self) -> Evaluation | None:
        """The first of the best evaluations, which `best_model.zip` belongs to."""
        return best_of(self.evaluations)

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON values, each evaluation by its mean and deviation."""
        return {
            **asdict(self),
            "folder": str(self.folder),
            "evaluations": [_summary(evaluation) for evaluation in self.evaluations],
            "best": _summary(self.best) if self.best else None,
        }


def best_of(evaluations: Sequence[Evaluation]) -> Evaluation | None:
    """Return the first of the best evaluations, None of none."""
    return max(evaluations, key=lambda evaluation: evaluation.mean, default=None)


def save_evaluations(path: Path, evaluations: Sequence[Evaluation]) -> None:
    """Write evaluations to a JSON file."""
    write_text(path, json.dumps([asdict(evaluation) for evaluation in evaluations]) + "\n")


def load_evaluations(path: Path) -> list[Evaluation]:
    """Read the evaluations that `save_evaluations` wrote; none if there is no such file.

    Raises:
        BadInput: The file is none of ours.
    """
    if not path.exists():
        return []
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadInput(f"{path}: not a JSON file ({error})") from error
    if not isinstance(entries, list):
        raise BadInput(f"{path}: expected a list of evaluations, got {entries!r}")
    return [_evaluation(entry, f"{path}, evaluation {i}") for i, entry in enumerate(entries, 1)]


def _evaluation(entry: Any, where: str) -> Evaluation:
    """Return an evaluation as JSON holds it, or say what does not fit."""
    names = ("timesteps", "returns", "lengths")
    if not isinstance(entry, dict) or entry.keys() != set(names):
        raise BadInput(f"{where}: expected an object with {', '.join(names)}, got {entry!r}")
    timesteps, returns, lengths = (entry[name] for name in names)
    if type(timesteps) is not int:
        raise BadInput(f"{where}: timesteps must be a whole number, got {timesteps!r}")
    for name, values in (("returns", returns), ("lengths", lengths)):
        is_list = isinstance(values, list) and values
        if not is_list or not all(type(value) in (int, float) for value in values):
            raise BadInput(f"{where}: {name} must be a list of numbers, got {values!r}")
    return Evaluation(timesteps, tuple(returns), tuple(lengths))


def _summary(evaluation: Evaluation) -> dict[str, float]:
    return {
        "timesteps": evaluation.timesteps,
        "mean": evaluation.mean,
        "std": evaluation.std,
    }
