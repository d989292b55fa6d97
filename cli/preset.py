"""A task and the settings to train it with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A task and the settings to train it with.

    Attributes:
        env_id: Gymnasium id of the environment.
        total_timesteps: Environment steps to train for.
        num_envs: Number of environments that step in parallel.
        goal: Mean return at which the task counts as learned; None if nobody knows.
        agent: Keyword arguments of `batchppo.BatchPPO`.
        wrappers: Wrappers of each environment, as `wrappers.load_wrapper` reads them.
        source: Where the settings come from.
    """

    env_id: str
    total_timesteps: int
    num_envs: int
    goal: float | None
    agent: Mapping[str, Any] = field(default_factory=dict)
    wrappers: tuple[str, ...] = ()
    source: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "agent", MappingProxyType(dict(self.agent)))

    def to_json(self) -> dict[str, Any]:
        """Return the preset as JSON values."""
        return {**vars(self), "agent": dict(self.agent)}
