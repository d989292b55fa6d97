"""Spaces as trees whose leaves are arrays, or cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

from batchgym.memory import ArrayRequest

_ARRAY_SPACES = (Box, Discrete, MultiBinary, MultiDiscrete)


def is_array_space(space: gym.Space[Any]) -> bool:
    """Says whether every element is an array of one shape and dtype, and can be shared."""
    return (
        isinstance(space, _ARRAY_SPACES) and space.dtype is not None and space.dtype.kind in "biuf"
    )


def leaf_spaces(space: gym.Space[Any]) -> Iterator[gym.Space[Any]]:
    """Yields the leaves of nested Dict and Tuple spaces, in order."""
    if isinstance(space, Dict):
        for child in space.spaces.values():
            yield from leaf_spaces(child)
    elif isinstance(space, Tuple):
        for child in space.spaces:
            yield from leaf_spaces(child)
    else:
        yield space


def batch_request(space: gym.Space[Any], num_envs: int) -> ArrayRequest:
    """Returns the request for an array that holds one element per environment."""
    if space.shape is None or space.dtype is None:
        raise TypeError(f"{space} has no fixed shape and dtype")
    return ArrayRequest((num_envs, *space.shape), space.dtype)


def require_box(space: gym.Space[Any], who: str) -> Box:
    """Returns `space` if it is a Box; `who` is what the error names.

    Raises:
        TypeError: If it is another one.
    """
    if not isinstance(space, Box):
        raise TypeError(
            f"{who} needs observations that are a Box, got {space}; "
            f"gymnasium.wrappers.FlattenObservation makes one of most others"
        )
    return space
