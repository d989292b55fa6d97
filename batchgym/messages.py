"""The messages between the owner and its workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
from gymnasium.vector import AutoresetMode

from batchgym.info_schema import InfoEntry
from batchgym.memory import Region


@dataclass(frozen=True)
class Start:
    """First thing a worker reads: what it owns; `spin` is the argument of Spin."""

    worker: int
    first: int
    env_fns: tuple[Callable[[], gym.Env[Any, Any]], ...]
    autoreset_mode: AutoresetMode
    infos: str | tuple[str, ...]
    spin: int
    specs: tuple[bytes, ...]


@dataclass(frozen=True)
class Hello:
    """The environments exist: one entry of each per environment."""

    observation_spaces: tuple[gym.Space[Any], ...]
    action_spaces: tuple[gym.Space[Any], ...]
    metadata: Mapping[str, Any]
    render_mode: str | None


@dataclass(frozen=True)
class Setup:
    """Where the arrays are. With `shared` false, observations travel as messages."""

    num_envs: int
    observation_space: gym.Space[Any]
    action_space: gym.Space[Any]
    region: Region
    shared: bool


@dataclass(frozen=True)
class Schema:
    """From now on these info entries are written to this region."""

    num_envs: int
    region: Region
    entries: tuple[InfoEntry, ...]


@dataclass(frozen=True)
class ActionDtypes:
    """From now on the shared actions are of these dtypes, one per leaf of the action space."""

    dtypes: tuple[str, ...]


@dataclass(frozen=True)
class Reset:
    """Reset these environments; counted from the worker's first, as everywhere below.

    With `pend`, they look like ones whose episode has just ended.
    """

    slots: tuple[int, ...]
    seeds: tuple[int | None, ...]
    options: dict[str, Any] | None
    one_by_one: bool = False
    pend: bool = False


@dataclass(frozen=True)
class Step:
    """Step these environments; `actions` is None if they are in shared memory."""

    slots: tuple[int, ...]
    actions: tuple[Any, ...] | None
    one_by_one: bool = False


@dataclass(frozen=True)
class Call:
    """Call a method, or get an attribute, of every environment."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True)
class SetAttr:
    """Set an attribute, one value per environment."""

    name: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Close:
    """Close the environments and end."""


@dataclass(frozen=True)
class Failure:
    """An exception of an environment; `pickled` is None if it cannot be rebuilt."""

    env_index: int
    doing: str
    pickled: bytes | None
    summary: str
    traceback: str


@dataclass
class Reply:
    """What did not fit into shared memory.

    Attributes:
        env_index: The environment, for a reply to one of several sent one by one.
        value: Result of a call, or Hello.
        failures: Exceptions of environments.
        observations: Per environment, the leaves of the observation that cannot be shared.
        infos: Per environment, what of the info is not in the schema.
        raw_infos: Per environment, an info that contradicts the schema, whole.
    """

    env_index: int | None = None
    value: Any = None
    failures: list[Failure] = field(default_factory=list)
    observations: dict[int, list[Any]] = field(default_factory=dict)
    infos: dict[int, dict[Any, Any]] = field(default_factory=dict)
    raw_infos: dict[int, dict[Any, Any]] = field(default_factory=dict)

    def is_done(self) -> bool:
        """Says whether everything did fit, so that there is nothing to tell."""
        return not (
            self.failures
            or self.infos
            or self.raw_infos
            or self.observations
            or self.value is not None
        )
