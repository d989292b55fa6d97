"""Specs of batchgym's own: the same environment, vectorized by processes."""

from __future__ import annotations

import copy
import dataclasses
import enum
import json
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from batchgym.registered_specs import NAMESPACE

ENTRY = "batchgym.entry"

# Bases of twins that were made from a spec that the registry lacks, or has another version of.
_unregistered: dict[str, EnvSpec] = {}


def twin_id(base_id: str) -> str:
    """Returns the id of an id's twin; an id has one namespace only, so a slash becomes a dash."""
    return f"{NAMESPACE}/{base_id.replace('/', '-')}"


class Twin(EnvSpec):
    """A spec that `gymnasium.make_vec` makes a ProcessVectorEnv from.

    It stays an EnvSpec in every other way: `make` and the vectorization modes `sync` and `async`
    work with it, and `to_json` does as long as the arguments can be stored.
    """

    @classmethod
    def of(cls, base: EnvSpec) -> Twin:
        """Returns the twin of a spec."""
        name = base.id
        if gym.registry.get(base.id) != base:
            name = f"{base.id}#{len(_unregistered)}"
            _unregistered[name] = base
        fields = {f.name: getattr(base, f.name) for f in dataclasses.fields(base) if f.init}
        fields.update(
            id=twin_id(base.id),
            kwargs=copy.deepcopy(base.kwargs),
            vector_entry_point=f"{ENTRY}:{name}",
        )
        if base.additional_wrappers:
            # `make_vec` refuses these beside a vector entry point; the base brings its own.
            fields.update(
                entry_point=f"{ENTRY}:make {name}",
                additional_wrappers=(),
                max_episode_steps=None,
                order_enforce=False,
                disable_env_checker=True,
                kwargs={},
            )
        return cls(**fields)

    @staticmethod
    def base_of(name: str) -> EnvSpec:
        """Returns the spec of the environment that a twin was made of.

        Args:
            name: What stands after the colon of the twin's entry point.
        """
        if name in _unregistered:
            return _unregistered[name]
        return gym.spec(name.partition("#")[0])

    def to_json(self) -> str:
        """Returns the spec as JSON.

        Enums are stored as their values, and importable wrappers by their names.

        Raises:
            ValueError: If an argument cannot be stored.
        """
        plain = copy.copy(self)
        plain.kwargs = {name: _plain(name, value) for name, value in self.kwargs.items()}
        return EnvSpec.to_json(plain)


def _plain(name: str, value: Any) -> Any:
    """Returns a value as JSON can store it."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, dict):
        return {key: _plain(name, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(name, item) for item in value]
    if callable(value):
        return _name_of(name, value)
    try:
        json.dumps(value)
    except TypeError:
        raise ValueError(
            f"Argument `{name}` contains {value!r}, which cannot be stored as JSON."
        ) from None
    return value


def _name_of(name: str, function: Any) -> str:
    module = getattr(function, "__module__", None)
    path = getattr(function, "__qualname__", "")
    if module in (None, "__main__") or "<" in path or "." in path:
        raise ValueError(
            f"Argument `{name}` contains {function!r}, which cannot be stored as JSON: only "
            "classes and functions at the top level of an importable module can be named."
        )
    return f"{module}:{path}"
