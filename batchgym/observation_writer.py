"""The worker's side of observations: writes one environment's row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Dict, Tuple

Writer = Callable[[Any], None]
Loose = dict[int, list[Any]]


def make_writer(
    space: gym.Space[Any],
    arrays: list[npt.NDArray[Any] | None],
    env_index: int,
    loose: Loose,
    shared: bool,
) -> Writer:
    """Returns a function that writes an observation of one environment.

    Args:
        space: Observation space of the environment.
        arrays: One per leaf of the space, None for one that cannot be shared.
        env_index: Row of the arrays, key in `loose`.
        loose: Where the leaves that cannot be shared are left.
        shared: Whether anything is to be shared; if not, the observation is left whole.
    """
    if not shared:

        def write_whole(observation: Any) -> None:
            loose[env_index] = [observation]

        return write_whole
    write = _tree_writer(space, iter(arrays), env_index, loose)
    if all(array is not None for array in arrays):
        return write

    def write_mixed(observation: Any) -> None:
        loose[env_index] = []
        write(observation)

    return write_mixed


def _tree_writer(
    space: gym.Space[Any], arrays: Iterator[npt.NDArray[Any] | None], env_index: int, loose: Loose
) -> Writer:
    items: list[tuple[Any, Writer]]
    if isinstance(space, Dict):
        items = [
            (key, _tree_writer(child, arrays, env_index, loose))
            for key, child in space.spaces.items()
        ]
    elif isinstance(space, Tuple):
        items = [
            (position, _tree_writer(child, arrays, env_index, loose))
            for position, child in enumerate(space.spaces)
        ]
    else:
        array = next(arrays)
        if array is None:

            def write_loose(value: Any) -> None:
                loose[env_index].append(value)

            return write_loose
        return _array_writer(array, env_index)

    def write(observation: Any) -> None:
        for key, write_child in items:
            write_child(observation[key])

    return write


def _array_writer(array: npt.NDArray[Any], env_index: int) -> Writer:
    shape = array.shape[1:]
    # Zero-dimensional for a scalar space, so that one assignment serves every shape.
    row = array[env_index : env_index + 1].reshape(shape)

    def write(value: Any) -> None:
        # NumPy would broadcast a smaller observation without a word.
        if (value.shape if type(value) is np.ndarray else np.shape(value)) != shape:
            raise ValueError(
                f"Environment {env_index} returned an observation of shape {np.shape(value)}; "
                f"its observation space says {shape}. Let `reset` and `step` return elements of "
                "`observation_space`."
            )
        row[...] = value

    return write
