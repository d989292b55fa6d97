"""The agent's hyperparameters: typed, checked and immutable."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any

from batchppo.errors import did_you_mean
from batchppo.schedules import (
    ConstantSchedule,
    Schedule,
    ScheduleLike,
    as_schedule,
    schedule_from_json,
    schedule_to_json,
)

ROLLOUT_ROWS = 2048
"""How many rows a rollout has where `n_steps` is not given, over all environments."""

_MIN_STEPS = 16
_OBJECTIVES = ("clip", "kl_penalty")
_POSITIVE = (
    "max_grad_norm",
    "target_kl",
    "clip_observation",
    "clip_reward",
    "kl_target",
    "kl_init_penalty",
    "kl_cutoff_factor",
    "kl_cutoff_coef",
)
_OPTIONAL = ("max_grad_norm", "target_kl")
_COUNTS = (
    "n_steps",
    "batch_size",
    "n_epochs",
    "stats_window_size",
    "sequence_length",
    "sde_sample_freq",
)
_FLAGS = ("normalize_advantage", "log_histograms", "normalize_observations", "normalize_rewards")
_SCHEDULES = ("learning_rate", "clip_range", "clip_range_vf", "ent_coef", "vf_coef")


@dataclass(frozen=True, kw_only=True)
class PPOConfig:
    """Hyperparameters of `BatchPPO`; names and meaning as in Stable-Baselines3."""

    learning_rate: ScheduleLike = 3e-4
    """Adam's step size."""
    n_steps: int | None = None
    """Steps per environment and rollout; None for 2,048 over all environments, at least 16."""
    batch_size: int = 256
    """The most rows a minibatch may have; may exceed the rollout."""
    sequence_length: int = 32
    """Rows per sequence that a policy with memory learns from; others have no use for it."""
    n_epochs: int = 10
    """How many times an update uses each row."""
    gamma: float = 0.99
    """Discount."""
    gae_lambda: float = 0.95
    """Trace decay of generalized advantage estimation."""
    clip_range: ScheduleLike = 0.2
    """How far the probability ratio may leave 1 before its gradient is cut."""
    clip_range_vf: ScheduleLike | None = None
    """How far a value may leave the old one before its gradient is cut; None for no bound."""
    normalize_advantage: bool = True
    """Whether each minibatch's advantages are shifted to mean 0 and scaled to variance 1."""
    objective: str = "clip"
    """"clip" for the clipped surrogate, "kl_penalty" for the adaptive divergence penalty."""
    kl_target: float = 0.01
    """The divergence per update that the penalty aims at."""
    kl_init_penalty: float = 1.0
    """The penalty's weight at the start."""
    kl_cutoff_factor: float = 2.0
    """From how many times the target on a quadratic penalty is added."""
    kl_cutoff_coef: float = 1000.0
    """The weight of the quadratic penalty."""
    ent_coef: ScheduleLike = 0.0
    """Weight of the entropy bonus."""
    vf_coef: ScheduleLike = 0.5
    """Weight of the value loss."""
    max_grad_norm: float | None = 0.5
    """The largest global norm of a gradient; None for no bound."""
    sde_sample_freq: int = -1
    """Steps between two draws of state-dependent noise; -1 for one draw a rollout."""
    target_kl: float | None = None
    """An update ends before the step whose divergence exceeds 1.5 times this; None for never."""
    stats_window_size: int = 100
    """Over how many of the last episodes the logged means go."""
    log_histograms: bool = False
    """Whether TensorBoard gets histograms of each rollout, its losses, gradients and weights."""
    normalize_observations: bool = True
    """Whether observation vectors are shifted and scaled by running statistics."""
    normalize_rewards: bool = True
    """Whether the update sees rewards divided by the deviation of the discounted return."""
    clip_observation: float = 10.0
    """The largest absolute value of a normalized observation."""
    clip_reward: float = 10.0
    """The largest absolute value of a normalized reward."""

    def __post_init__(self) -> None:
        for name in _SCHEDULES:
            value = getattr(self, name)
            if value is not None or name != "clip_range_vf":
                object.__setattr__(self, name, as_schedule(value, name))
        for name in _FLAGS:
            require_flag(name, getattr(self, name))
        if self.objective not in _OBJECTIVES:
            raise ValueError(
                f"objective must be one of {', '.join(_OBJECTIVES)}, got {self.objective!r}"
            )
        self._check_counts()
        self._check_fractions()
        self._check_ranges()

    def _check_counts(self) -> None:
        for name in _COUNTS:
            value = getattr(self, name)
            if name == "n_steps" and value is None:
                continue
            if name == "sde_sample_freq" and value == -1:
                continue
            object.__setattr__(self, name, whole_number(name, value))

    def _check_fractions(self) -> None:
        for name in ("gamma", "gae_lambda"):
            value = number(name, getattr(self, name))
            if not 0.0 <= value <= 1.0:
                raise ValueError(f"{name} must be in [0, 1], got {value!r}")
            object.__setattr__(self, name, value)

    def _check_ranges(self) -> None:
        for name in _POSITIVE:
            if getattr(self, name) is None and name in _OPTIONAL:
                continue
            value = number(name, getattr(self, name))
            if not (value > 0.0 and math.isfinite(value)):
                raise ValueError(f"{name} must be a positive number, got {value!r}")
            object.__setattr__(self, name, value)
        for name in _SCHEDULES:
            schedule = getattr(self, name)
            bounds = schedule.bounds() if schedule is not None else None
            if bounds is not None and (bounds[0] < 0.0 or not math.isfinite(bounds[1])):
                raise ValueError(f"{name} must never be negative or infinite, got {schedule}")

    def steps_for(self, num_envs: int) -> int:
        """Returns how many steps per environment a rollout of `num_envs` environments has."""
        return self.n_steps or max(_MIN_STEPS, ROLLOUT_ROWS // num_envs)

    def to_json(self) -> dict[str, Any]:
        """Returns the hyperparameters as JSON values; functions become markers."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: _schedule_value(value, name) if isinstance(value, Schedule) else value
            for name, value in values.items()
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> PPOConfig:
        """Returns what `to_json` wrote.

        Raises:
            ValueError: an unknown key, or a value that is not allowed.
        """
        refuse_unknown(document, (field.name for field in fields(cls)), "hyperparameter")
        values: dict[str, Any] = {
            name: schedule_from_json(value) if isinstance(value, dict) else value
            for name, value in document.items()
        }
        return cls(**values)


def _schedule_value(schedule: Schedule, name: str) -> float | dict[str, Any]:
    if isinstance(schedule, ConstantSchedule):
        return schedule.value
    return schedule_to_json(schedule, name)


def number(name: str, value: Any) -> float:
    """Returns a number of any type as Python's own, which a model file can hold.

    Raises:
        TypeError: it is no number.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r} of type {type(value).__name__}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} must be a number that 64 bits can hold") from None


def whole_number(name: str, value: Any, least: int = 1) -> int:
    """Returns a whole number of any type, also 16.0, as Python's own.

    Raises:
        ValueError: it is not whole, or less than `least`.
        TypeError: it is no number.
    """
    exact = number(name, value)
    if not exact.is_integer() or exact < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)  # not of `exact`, which has 53 bits


def require_flag(name: str, value: Any) -> None:
    """Raises TypeError unless a value is True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def refuse_unknown(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raises ValueError for the first name in `given` that is not in `known`, with the nearest."""
    allowed = list(known)
    for name in given:
        if name not in allowed:
            raise ValueError(
                f"unknown {what} '{name}'.{did_you_mean(name, allowed)} "
                f"Known are: {', '.join(allowed)}"
            )
