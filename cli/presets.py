"""Presets: tasks with settings that are known to learn them.

The numbers are checked by `benchmarks/learning.py`, whose results are committed beside it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Preset:
    """A task and the settings to train it with.

    Attributes:
        env_id: Gymnasium id of the environment.
        total_timesteps: Environment steps to train for.
        num_envs: Number of environments that step in parallel.
        goal: Mean return at which the task counts as learned; None if nobody knows.
        agent: Keyword arguments of `batchppo.BatchPPO`.
    """

    env_id: str
    total_timesteps: int
    num_envs: int
    goal: float | None
    agent: Mapping[str, Any]


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "cartpole": Preset(
            env_id="CartPole-v1",
            total_timesteps=100_000,
            num_envs=8,
            goal=475.0,
            agent=MappingProxyType(
                {
                    "learning_rate": "linear:1e-3",
                    "clip_range": "linear:0.2",
                    "n_steps": 128,
                    "batch_size": 256,
                    "n_epochs": 10,
                    "gamma": 0.98,
                    "gae_lambda": 0.9,
                    # Positions and angles are small numbers already; scaled by what an agent saw
                    # so far, some seeds drift off the track after 370 steps.
                    "normalize_observations": False,
                }
            ),
        ),
        "pendulum": Preset(
            env_id="Pendulum-v1",
            total_timesteps=200_000,
            num_envs=8,
            goal=-200.0,
            agent=MappingProxyType(
                {
                    "learning_rate": 1e-3,
                    "n_steps": 256,
                    "batch_size": 256,
                    "n_epochs": 10,
                    "gamma": 0.9,
                    "gae_lambda": 0.95,
                }
            ),
        ),
    }
)
