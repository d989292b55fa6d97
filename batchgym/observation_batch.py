"""The owner's side of observations: rows of shared arrays, or what came as messages."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.error import CustomSpaceError
from gymnasium.spaces import Dict, Tuple
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from batchgym.buffers import Buffers
from batchgym.spaces import leaf_spaces


class ObservationBatch(Protocol):
    """All environments' observations."""

    current: Any
    """The batched observation; the same object every time, where no leaf is pickled."""

    def update(self, loose: dict[int, list[Any]]) -> None:
        """Takes in what came as messages: environment index to values."""

    def copy(self) -> Any:
        """Returns a copy that the next step does not change."""

    def rows(self, env_ids: npt.NDArray[np.intp]) -> Any:
        """Returns a copy of some environments' observations, batched."""

    def detach(self) -> None:
        """Lets go of the shared memory and keeps a copy."""


class SharedObservations:
    """Observations in shared memory; leaves that cannot be shared are tuples."""

    def __init__(self, space: gym.Space[Any], num_envs: int, buffers: Buffers) -> None:
        self._space = space
        self._leaves: list[Any] = [
            array if array is not None else _empty_leaf(leaf, num_envs)
            for array, leaf in zip(buffers.observations, leaf_spaces(space), strict=True)
        ]
        self._loose = [leaf for leaf in self._leaves if isinstance(leaf, list)]
        self.current = self._assemble(lambda leaf: leaf)

    def update(self, loose: dict[int, list[Any]]) -> None:
        """See ObservationBatch."""
        if not loose:
            return
        for env_index, values in loose.items():
            for leaf, value in zip(self._loose, values, strict=True):
                leaf[env_index] = value
        self.current = self._assemble(lambda leaf: leaf)

    def copy(self) -> Any:
        """See ObservationBatch."""
        if isinstance(self.current, np.ndarray):
            return self.current.copy()
        return self._assemble(deepcopy)

    def rows(self, env_ids: npt.NDArray[np.intp]) -> Any:
        """See ObservationBatch."""

        def pick(leaf: Any) -> Any:
            return [leaf[i] for i in env_ids] if isinstance(leaf, list) else leaf[env_ids]

        return self._assemble(pick)

    def detach(self) -> None:
        """See ObservationBatch."""
        self._leaves = [deepcopy(leaf) for leaf in self._leaves]
        self.current = self._assemble(lambda leaf: leaf)

    def _assemble(self, transform: Any) -> Any:
        leaves = (transform(leaf) for leaf in self._leaves)
        return _build(self._space, leaves)


class MessageObservations:
    """Observations that came as messages, batched by Gymnasium (`shared_memory=False`)."""

    def __init__(self, space: gym.Space[Any], num_envs: int) -> None:
        self._space = space
        self._batch: Any = create_empty_array(space, num_envs, fn=np.zeros)
        try:
            self._rows = list(iterate(batch_space(space, num_envs), deepcopy(self._batch)))
        except (TypeError, CustomSpaceError):  # a custom space has no empty element
            self._rows = [None] * num_envs
        self.current: Any = self._batch

    def update(self, loose: dict[int, list[Any]]) -> None:
        """See ObservationBatch."""
        for env_index, values in loose.items():
            self._rows[env_index] = values[0]
        self.current = concatenate(self._space, self._rows, self._batch)

    def copy(self) -> Any:
        """See ObservationBatch."""
        return deepcopy(self.current)

    def rows(self, env_ids: npt.NDArray[np.intp]) -> Any:
        """See ObservationBatch."""
        out: Any = create_empty_array(self._space, len(env_ids), fn=np.zeros)
        return concatenate(self._space, [self._rows[i] for i in env_ids], out)

    def detach(self) -> None:
        """See ObservationBatch."""


def _build(space: gym.Space[Any], leaves: Iterator[Any]) -> Any:
    if isinstance(space, Dict):
        return {key: _build(child, leaves) for key, child in space.spaces.items()}
    if isinstance(space, Tuple):
        return tuple(_build(child, leaves) for child in space.spaces)
    leaf = next(leaves)
    return tuple(leaf) if isinstance(leaf, list) else leaf


def _empty_leaf(space: gym.Space[Any], num_envs: int) -> list[Any]:
    empty = create_empty_array(space, num_envs)
    return [None] * num_envs if empty is None else list(empty)  # None for a custom space
