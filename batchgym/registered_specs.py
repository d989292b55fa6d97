"""The environments that the owner has registered, for `gymnasium.make` inside a worker."""

from __future__ import annotations

import contextlib

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from batchgym import pickling

NAMESPACE = "batchgym"


def _is_builtin(spec: EnvSpec) -> bool:
    return isinstance(spec.entry_point, str) and spec.entry_point.startswith("gymnasium.envs.")


def user_specs() -> tuple[bytes, ...]:
    """Returns pickled lists of the specs that a fresh interpreter does not have."""
    specs = [
        spec
        for spec in gym.registry.values()
        if spec.namespace != NAMESPACE and not _is_builtin(spec)
    ]
    plain = [spec for spec in specs if isinstance(spec.entry_point, str) and not spec.kwargs]
    pickled = [pickling.dump_by_value(plain)] if plain else []
    for spec in specs:
        if spec not in plain:
            # One that cannot be pickled is an error only where it is used: there it is not found.
            with contextlib.suppress(Exception):
                pickled.append(pickling.dump_by_value([spec]))
    return tuple(pickled)
