"""Actions on their way from the owner's batch to one environment's `step`.

Actions are not cast and their shape is not checked, as in Gymnasium: the environment gets what the
caller passed. An array of numbers travels in shared memory, in its own dtype; all else is pickled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Dict, Tuple
from gymnasium.vector.utils import batch_space, iterate

from batchgym.spaces import is_array_space, leaf_spaces

Leaves = list[npt.NDArray[Any]]


class ActionViews:
    """The shared bytes of the action leaves, seen as arrays of the current dtypes."""

    def __init__(
        self, space: gym.Space[Any], num_envs: int, raw: list[npt.NDArray[np.uint8]]
    ) -> None:
        self.space = space
        self._num_envs = num_envs
        self._raw = [array.reshape(-1) for array in raw]
        self.leaves: Leaves = []
        self.install(tuple(str(leaf.dtype) for leaf in leaf_spaces(space)))

    def install(self, dtypes: tuple[str, ...]) -> None:
        """Sees the bytes as these dtypes from now on."""
        if not self._raw:
            return
        self.leaves = []
        for space, raw, dtype in zip(leaf_spaces(self.space), self._raw, dtypes, strict=True):
            shape = (self._num_envs, *(space.shape or ()))
            size = int(np.prod(shape)) * np.dtype(dtype).itemsize
            self.leaves.append(raw[:size].view(dtype).reshape(shape))


class ActionSender:
    """The owner's side: checks a batch of actions and shares it where possible.

    Args:
        single_space: Action space of one environment.
        num_envs: Environments.
        raw: Shared bytes, see `Buffers.actions`.
    """

    def __init__(
        self, single_space: gym.Space[Any], num_envs: int, raw: list[npt.NDArray[np.uint8]]
    ) -> None:
        self._single_space = single_space
        self._num_envs = num_envs
        self._spaces: dict[int, gym.Space[Any]] = {}
        self._views = ActionViews(single_space, num_envs, raw)
        self._plain = is_array_space(single_space)

    @property
    def shared(self) -> npt.NDArray[Any] | None:
        """The shared array, where an action is one array and not several or none."""
        return self._views.leaves[0] if self._plain and self._views.leaves else None

    def share(self, actions: Any) -> bool:
        """Writes a whole batch to shared memory; False if it is not of the current dtypes."""
        leaves = self._views.leaves
        found = self._flatten(actions)
        if found is None or [a.dtype for a in found] != [view.dtype for view in leaves]:
            return False
        for view, array in zip(leaves, found, strict=True):
            view[...] = array
        return True

    def share_rows(self, actions: Any, env_ids: npt.NDArray[np.intp]) -> bool:
        """Like `share` for some environments, one row each."""
        found = self._flatten(actions, len(env_ids))
        leaves = self._views.leaves
        if found is None or [a.dtype for a in found] != [view.dtype for view in leaves]:
            return False
        for view, array in zip(leaves, found, strict=True):
            view[env_ids] = array
        return True

    def adapt(self, actions: Any) -> tuple[str, ...] | None:
        """Switches to the batch's dtypes; returns them, or None if it can't be shared at all."""
        found = self._flatten(actions)
        if found is None:
            return None
        dtypes = tuple(str(array.dtype) for array in found)
        self._views.install(dtypes)
        return dtypes

    def split(self, actions: Any, num_envs: int | None = None) -> tuple[Any, ...]:
        """Returns one action per environment.

        Raises:
            TypeError: If this is no batch of actions.
            ValueError: If it has more or fewer actions than environments.
        """
        expected = self._num_envs if num_envs is None else num_envs
        wanted = f"expected a batch of {expected} elements of {self._single_space}"
        if self._plain:
            actions = _as_sequence(actions, wanted)
        space = self._spaces.get(expected)
        if space is None:
            space = self._spaces[expected] = batch_space(self._single_space, expected)
        try:
            rows = tuple(iterate(space, actions))
        except KeyError as error:
            raise ValueError(f"The actions lack the key {error}; {wanted}.") from None
        if len(rows) != expected:
            raise ValueError(f"Got {len(rows)} actions for {expected} environments; {wanted}.")
        if self._plain:
            for index, row in enumerate(rows):
                if not isinstance(row, (int, float)) and np.asarray(row).dtype.kind not in "biuf":
                    raise TypeError(
                        f"Action {index} is {row!r} of type {type(row).__name__}; {wanted}."
                    )
        return rows

    def _flatten(self, actions: Any, num_envs: int | None = None) -> Leaves | None:
        """Returns the arrays of a batch, None if one is of another kind or shape."""
        if not self._views.leaves:
            return None
        found: Leaves = []
        if not _collect(self._single_space, actions, found):
            return None
        rows = self._num_envs if num_envs is None else num_envs
        for array, view in zip(found, self._views.leaves, strict=True):
            fits = array.dtype.kind in "biuf" and array.dtype.isnative and array.itemsize <= 8
            if not fits or array.shape != (rows, *view.shape[1:]):
                return None
        return found


class ActionReceiver:
    """The worker's side: hands out actions that nobody overwrites.

    Args:
        single_space: Action space of one environment.
        num_envs: Environments of all workers.
        raw: Shared bytes.
        rows: The worker's environments.
    """

    def __init__(
        self,
        single_space: gym.Space[Any],
        num_envs: int,
        raw: list[npt.NDArray[np.uint8]],
        rows: slice,
    ) -> None:
        self._views = ActionViews(single_space, num_envs, raw)
        self._rows = rows
        self._plain = is_array_space(single_space)
        self._batch_space = batch_space(single_space, rows.stop - rows.start)
        self._own: Leaves = []
        self.install(None)

    def install(self, dtypes: tuple[str, ...] | None) -> None:
        """Sees the shared bytes as these dtypes from now on."""
        if dtypes is not None:
            self._views.install(dtypes)
        self._own = [leaf[self._rows] for leaf in self._views.leaves]

    def take_all(self) -> Any:
        """Returns the actions of all the worker's environments: something to iterate over."""
        if self._plain:
            return self._own[0].copy()
        copies = [leaf.copy() for leaf in self._own]
        return iterate(self._batch_space, _assemble(self._views.space, iter(copies)))

    def take(self, slot: int) -> Any:
        """Returns the action of one environment."""
        picked = (leaf[slot].copy() for leaf in self._own)
        return _assemble(self._views.space, picked)


def _as_sequence(actions: Any, wanted: str) -> Any:
    if not isinstance(actions, (np.ndarray, list, tuple)) and hasattr(actions, "__array__"):
        actions = np.asarray(actions)
    refused = actions is None or isinstance(actions, (str, bytes, Mapping, set, frozenset))
    if refused or np.isscalar(actions) or (isinstance(actions, np.ndarray) and not actions.ndim):
        raise TypeError(f"The actions are {actions!r} of type {type(actions).__name__}; {wanted}.")
    return actions


def _collect(space: gym.Space[Any], actions: Any, found: Leaves) -> bool:
    if isinstance(space, Dict):
        return isinstance(actions, Mapping) and all(
            key in actions and _collect(child, actions[key], found)
            for key, child in space.spaces.items()
        )
    if isinstance(space, Tuple):
        return (
            isinstance(actions, tuple)
            and len(actions) == len(space.spaces)
            and all(
                _collect(child, part, found)
                for child, part in zip(space.spaces, actions, strict=True)
            )
        )
    if type(actions) is not np.ndarray:
        return False
    found.append(actions)
    return True


def _assemble(space: gym.Space[Any], leaves: Iterator[Any]) -> Any:
    if isinstance(space, Dict):
        return {key: _assemble(child, leaves) for key, child in space.spaces.items()}
    if isinstance(space, Tuple):
        return tuple(_assemble(child, leaves) for child in space.spaces)
    return next(leaves)
