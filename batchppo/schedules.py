"""Coefficients that change during training, as functions of the remaining progress.

The remaining progress runs from 1 (start) to 0 (end), as in Stable-Baselines3. Schedules are
plain values: they compare equal, print readably and turn into JSON and back, so that a model file
needs no pickle. Outside [0, 1] the progress is clamped: a schedule never leaves its end value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

Number: TypeAlias = int | float
ScheduleLike: TypeAlias = "Number | str | Schedule | Callable[[float], float]"

_FORMS = (
    "a number, 'constant:3e-4', 'linear:3e-4', 'linear:3e-4:1e-5' or 'piecewise:0=1e-3,0.5=1e-4'"
)


class Schedule:
    """A coefficient as a function of the remaining progress (1 at the start, 0 at the end)."""

    def __call__(self, progress_remaining: float) -> float:
        """Returns the value at `progress_remaining`, which is clamped to [0, 1]."""
        return self._at(1.0 - min(max(progress_remaining, 0.0), 1.0))

    def _at(self, progress: float) -> float:
        raise NotImplementedError("_at(progress in [0, 1]) -> value")

    def bounds(self) -> tuple[float, float] | None:
        """Returns the least and the greatest value, or None where they are not known."""
        raise NotImplementedError("bounds() -> (least, greatest) | None")


@dataclass(frozen=True)
class ConstantSchedule(Schedule):
    """Always `value`."""

    value: float

    def _at(self, progress: float) -> float:
        del progress
        return self.value

    def bounds(self) -> tuple[float, float]:
        """Returns the value twice."""
        return self.value, self.value


@dataclass(frozen=True)
class LinearSchedule(Schedule):
    """From `start` to `end` over the first `end_fraction` of training, then `end`."""

    start: float
    end: float = 0.0
    end_fraction: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.end_fraction <= 1.0:
            raise ValueError(f"end_fraction must be in (0, 1], got {self.end_fraction}")

    def _at(self, progress: float) -> float:
        if progress >= self.end_fraction:
            return self.end
        return self.start + progress / self.end_fraction * (self.end - self.start)

    def bounds(self) -> tuple[float, float]:
        """Returns the smaller and the larger of the two ends."""
        return min(self.start, self.end), max(self.start, self.end)


@dataclass(frozen=True)
class PiecewiseSchedule(Schedule):
    """`points` of (progress made, value) in ascending order; each value holds until the next."""

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        progress = [point for point, _ in self.points]
        if not progress or progress[0] != 0.0 or progress != sorted(set(progress)):
            raise ValueError(
                f"a piecewise schedule needs ascending points that begin at 0, got {self.points}"
            )

    def _at(self, progress: float) -> float:
        return next(value for point, value in reversed(self.points) if progress >= point)

    def bounds(self) -> tuple[float, float]:
        """Returns the least and the greatest value of all points."""
        values = [value for _, value in self.points]
        return min(values), max(values)


@dataclass(frozen=True)
class CallableSchedule(Schedule):
    """A user's function of the remaining progress.

    It cannot be stored in a model file, where a marker takes its place: a loaded model predicts
    without it and asks for it (`custom_objects=`) before it learns.
    """

    function: Callable[[float], float]

    def __call__(self, progress_remaining: float) -> float:
        """Returns the function's value at `progress_remaining`, clamped to [0, 1]."""
        progress_remaining = min(max(progress_remaining, 0.0), 1.0)
        value = self.function(progress_remaining)
        try:
            return float(value)
        except (TypeError, ValueError):
            raise TypeError(
                f"the schedule {self.function!r} returned {value!r} for a remaining progress of "
                f"{progress_remaining:.3g}; expected a number"
            ) from None

    def bounds(self) -> None:
        """Returns None: what a function may return is not known."""


@dataclass(frozen=True)
class MissingSchedule(Schedule):
    """The marker that stands in a loaded model for a function that could not be stored."""

    name: str

    def _at(self, progress: float) -> float:
        del progress
        raise ValueError(
            f"'{self.name}' was a function when this model was saved, which is not stored; "
            f"give it again: BatchPPO.load(path, custom_objects={{'{self.name}': function}})"
        )

    def bounds(self) -> None:
        """Returns None: what the missing function may return is not known."""


_STORABLE = {
    "constant": ConstantSchedule,
    "linear": LinearSchedule,
    "piecewise": PiecewiseSchedule,
    "missing": MissingSchedule,
}


def as_schedule(value: ScheduleLike, name: str) -> Schedule:
    """Returns `value` as a schedule.

    Args:
        value: a finite number, a schedule, a function of the remaining progress, or text such as
            "linear:3e-4" (from 3e-4 to 0), "linear:3e-4:1e-5", "constant:3e-4",
            "piecewise:0=1e-3,0.5=1e-4" (progress made = value).
        name: the argument's name, for messages.

    Raises:
        ValueError: text or number that is no schedule.
        TypeError: another kind of object.
    """
    if isinstance(value, Schedule):
        return value
    if isinstance(value, str):
        return _parse(value, name)
    if callable(value):
        return CallableSchedule(value)
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be {_FORMS}, or a function of the remaining progress; got {value!r}"
        ) from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, got {value}")
    return ConstantSchedule(number)


def _parse(text: str, name: str) -> Schedule:
    kind, _, rest = text.partition(":")
    try:
        if kind == "piecewise":
            points = (point.split("=") for point in rest.split(","))
            return PiecewiseSchedule(tuple((float(at), float(value)) for at, value in points))
        if kind == "linear":
            return LinearSchedule(*(float(part) for part in rest.split(":")))
        return ConstantSchedule(float(rest if kind == "constant" else text))
    except (ValueError, TypeError):
        raise ValueError(f"{name} must be {_FORMS}; got {text!r}") from None


def schedule_to_json(schedule: Schedule, name: str) -> dict[str, Any]:
    """Returns `schedule` as a JSON object; a function becomes a marker that carries `name`."""
    if isinstance(schedule, CallableSchedule):
        schedule = MissingSchedule(name)
    kind = next(kind for kind, cls in _STORABLE.items() if type(schedule) is cls)
    return {"schedule": kind, **asdict(schedule)}  # type: ignore[call-overload]


def schedule_from_json(document: dict[str, Any]) -> Schedule:
    """Returns the schedule that `schedule_to_json` wrote.

    Raises:
        ValueError: the document is of no known kind.
    """
    fields = dict(document)
    kind = _STORABLE.get(fields.pop("schedule", None))
    if kind is None:
        raise ValueError(f"unknown schedule {document!r}; known are {', '.join(_STORABLE)}")
    if kind is PiecewiseSchedule:
        fields["points"] = tuple((at, value) for at, value in fields["points"])
    schedule: Schedule = kind(**fields)
    return schedule
