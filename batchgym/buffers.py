"""The arrays that a vector environment shares with its workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from batchgym.memory import ArrayRequest, Region, SharedMemory
from batchgym.spaces import batch_request, is_array_space, leaf_spaces

_ACTION_BYTES = 8


@dataclass(frozen=True)
class Buffers:
    """One row per environment in every array.

    Attributes:
        observations: Arrays of the observation space's leaves, None for one that cannot be shared.
        actions: Bytes of the action space's leaves; empty if one of them cannot be shared.
        rewards: Float64.
        terminations: Bool.
        truncations: Bool.
    """

    observations: list[npt.NDArray[Any] | None]
    actions: list[npt.NDArray[np.uint8]]
    rewards: npt.NDArray[np.float64]
    terminations: npt.NDArray[np.bool_]
    truncations: npt.NDArray[np.bool_]


def _observation_leaves(space: gym.Space[Any], shared: bool) -> list[gym.Space[Any] | None]:
    if not shared:
        return [None]
    return [leaf if is_array_space(leaf) else None for leaf in leaf_spaces(space)]


def _action_requests(space: gym.Space[Any], num_envs: int) -> list[ArrayRequest]:
    leaves = list(leaf_spaces(space))
    if not all(is_array_space(leaf) for leaf in leaves):
        return []
    requests = [batch_request(leaf, num_envs) for leaf in leaves]
    # Wide enough for any of the usual dtypes: what the caller passes is not cast.
    return [
        ArrayRequest((*request.shape, max(_ACTION_BYTES, request.dtype.itemsize)), np.dtype("u1"))
        for request in requests
    ]


def buffer_requests(
    observation_space: gym.Space[Any], action_space: gym.Space[Any], num_envs: int, shared: bool
) -> list[ArrayRequest]:
    """Returns the arrays that `map_buffers` needs; both sides work them out alike."""
    return [
        *(
            batch_request(leaf, num_envs)
            for leaf in _observation_leaves(observation_space, shared)
            if leaf is not None
        ),
        *_action_requests(action_space, num_envs),
        ArrayRequest((num_envs,), np.dtype(np.float64)),
        ArrayRequest((num_envs,), np.dtype(np.bool_)),
        ArrayRequest((num_envs,), np.dtype(np.bool_)),
    ]


def map_buffers(
    memory: SharedMemory,
    region: Region,
    observation_space: gym.Space[Any],
    action_space: gym.Space[Any],
    num_envs: int,
    shared: bool,
) -> Buffers:
    """Maps the region that was made for `buffer_requests` of the same arguments."""
    requests = buffer_requests(observation_space, action_space, num_envs, shared)
    *arrays, rewards, terminations, truncations = memory.arrays(region, requests)
    remaining = iter(arrays)
    observations = [
        None if leaf is None else next(remaining)
        for leaf in _observation_leaves(observation_space, shared)
    ]
    return Buffers(observations, list(remaining), rewards, terminations, truncations)
