"""Checks of the arguments that users give to `BatchPPO`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import Space

from batchppo.config import PPOConfig, whole_number
from batchppo.errors import SpaceError, did_you_mean
from batchppo.schedules import MissingSchedule

HYPERPARAMETERS = tuple(field.name for field in fields(PPOConfig))
LOAD_EXTRAS = ("seed", "verbose", "tensorboard_log", "num_envs", "num_workers")
_CONSTRUCTOR_ONLY = ("policy", "env", "policy_kwargs", "use_sde", "device")


def fresh_seed() -> int:
    """Returns a seed from the operating system, small enough for every environment."""
    return int(np.random.SeedSequence().generate_state(1)[0] >> 1)


def as_seed(seed: Any) -> int:
    """Returns a user's seed, a fresh one for None; raises ValueError or TypeError for others."""
    return fresh_seed() if seed is None else whole_number("seed", seed, least=0)


def require_mapping(name: str, value: Any) -> None:
    """Raises TypeError unless an argument is a mapping or None."""
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a dict such as dict(net_arch=[64, 64]), got {value!r}")


def require_schedules(config: PPOConfig) -> None:
    """Raises ValueError if a schedule is missing that could not be stored with the model."""
    for name in HYPERPARAMETERS:
        value = getattr(config, name)
        if isinstance(value, MissingSchedule):
            value(1.0)  # raises, and says what to do


def require_equal_spaces(own: Space[Any], other: Space[Any], what: str) -> None:
    """Raises SpaceError unless an environment's space is the agent's."""
    if own != other:
        raise SpaceError(
            f"the environment's {what} space is {other}, the agent's is {own}; they must be equal"
        )


def refuse_unknown_constructor_arguments(given: Mapping[str, Any]) -> None:
    """Raises TypeError for the first argument: all known ones have parameters of their own."""
    known = (*HYPERPARAMETERS, *_CONSTRUCTOR_ONLY, *LOAD_EXTRAS)
    for name in given:
        _raise_unknown("BatchPPO", name, known)


def refuse_unknown_load_arguments(given: Mapping[str, Any]) -> None:
    """Raises TypeError for the first name that is no hyperparameter."""
    for name in given:
        if name not in HYPERPARAMETERS:
            _raise_unknown("BatchPPO.load", name, (*HYPERPARAMETERS, *LOAD_EXTRAS))


def _raise_unknown(where: str, name: str, known: tuple[str, ...]) -> None:
    raise TypeError(
        f"{where} got an unknown argument '{name}'.{did_you_mean(name, known)} "
        f"Known are: {', '.join(sorted(known))}"
    )


if TYPE_CHECKING:
    class_only_method = classmethod
else:

    class class_only_method(classmethod):  # noqa: N801 - used as a decorator
        """A class method that warns when it is called on an instance, which it does not change."""

        def __get__(self, instance: Any, owner: Any = None, /) -> Any:
            if instance is not None:
                name = f"{type(instance).__name__}.{self.__func__.__name__}"
                warnings.warn(
                    f"{name}() returns a new agent and leaves this one as it is; write "
                    f"agent = {name}(...), or agent.set_parameters(path) to take over the weights",
                    stacklevel=2,
                )
            return super().__get__(instance, owner)
