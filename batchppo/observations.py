"""From raw observations of a space to what networks read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Never

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from batchppo.all_finite import all_finite
from batchppo.errors import SpaceError
from batchppo.inputs import ACTION_MASK, VECTOR, Inputs

FloatArray = NDArray[np.floating]
BoolArray = NDArray[np.bool_]


class ObservationEncoder:
    """Turns observations of a space into what networks read.

    A Box is flattened; Discrete and MultiDiscrete become one-hot; MultiBinary becomes 0 and 1; a
    Dict is its entries side by side, in the space's order.

    Args:
        space: the observation space of one environment.
        images: whether images (see `is_image`) stay images instead of being flattened.
        mask_size: the length of the `action_mask` that a Dict may have, which is then no part of
            the observation; None to take an entry of that name like any other.

    Attributes:
        space: the same.
        size: how many numbers the vector has.
        numeric: which of them are measurements, and so to be normalized, shape [size].
        vectors: the shapes of what the vector holds one behind the other, by name.
        images: the shapes of the images, by name, channels last.
        masked: whether the observations bring action masks.

    Raises:
        SpaceError: a space of another kind, or a mask of another length.
    """

    def __init__(
        self, space: spaces.Space[Any], images: bool = False, mask_size: int | None = None
    ) -> None:
        self.space = space
        leaves = dict(_leaves(space, ()))
        self.masked = mask_size is not None and (ACTION_MASK,) in leaves
        self._checked = leaves.copy()
        if self.masked:
            _require_mask_size(leaves.pop((ACTION_MASK,)).width, mask_size)
        pictures = {path: leaf for path, leaf in leaves.items() if images and is_image(leaf.space)}
        self._images = {".".join(path) or "image": path for path in pictures}
        shapes = {name: pictures[path].space.shape or () for name, path in self._images.items()}
        self._moved = {name for name, shape in shapes.items() if has_channels_first(shape)}
        self.images = {
            name: (*shape[1:], shape[0]) if name in self._moved else tuple(shape)
            for name, shape in shapes.items()
        }
        self._vector = [(path, leaf) for path, leaf in leaves.items() if path not in pictures]
        self.vectors = {".".join(path): leaf.encoded_shape for path, leaf in self._vector}
        widths = [leaf.width for _, leaf in self._vector]
        self.size = sum(widths)
        self.numeric = np.repeat(
            np.array([leaf.numeric for _, leaf in self._vector], np.bool_), widths
        )

    def encode(self, batch: Any) -> Inputs:
        """Returns a batch of n observations as inputs with n rows; vectors are not normalized."""
        inputs: Inputs = {}
        if self._vector:
            columns = [leaf.encode(np.asarray(_at(batch, path))) for path, leaf in self._vector]
            inputs[VECTOR] = columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)
        for name, path in self._images.items():
            image = np.asarray(_at(batch, path))
            inputs[name] = (
                np.ascontiguousarray(np.moveaxis(image, 1, -1)) if name in self._moved else image
            )
        if self.masked:
            mask = np.asarray(batch[ACTION_MASK])
            inputs[ACTION_MASK] = mask.reshape(len(mask), -1).astype(np.bool_)
        return inputs

    def as_batch(self, observation: Any) -> tuple[Any, bool]:
        """Returns an observation as a batch, and whether a single one came.

        Args:
            observation: one observation of the space, or a batch with a leading axis of any
                length; a Dict's entries must agree.

        Raises:
            SpaceError: neither of the two.
        """
        if isinstance(observation, tuple):
            raise SpaceError(
                "predict got a tuple, expected an observation; env.reset() returns "
                "(observation, info): pass the observation alone"
            )
        single = {
            leaf.is_single(_entry(observation, path, self.space), ".".join(path))
            for path, leaf in self._checked.items()
        }
        if len(single) != 1:
            raise SpaceError(
                "predict got an observation in which some entries have a batch axis and others "
                "have none; give every entry the same leading axis, or none of them"
            )
        is_single = single.pop()
        return (_add_axis(observation) if is_single else observation), is_single


class _Leaf:
    """How one basic space turns into columns."""

    def __init__(
        self,
        space: spaces.Space[Any],
        width: int,
        numeric: bool,
        encode: Callable[[NDArray[Any]], FloatArray],
    ) -> None:
        self.width = width
        self.numeric = numeric
        self.encode = encode
        self.space = space
        self._shape = tuple(space.shape or ())

    @property
    def encoded_shape(self) -> tuple[int, ...]:
        """The shape of its columns: the space's, or that of one-hot rows."""
        keeps_shape = isinstance(self.space, (spaces.Box, spaces.MultiBinary)) and self._shape
        return self._shape if keeps_shape else (self.width,)

    def is_single(self, value: Any, name: str) -> bool:
        """Returns whether `value` is one element of the space, False for a batch of them."""
        try:
            array = np.asarray(value)
        except ValueError as error:  # a ragged list
            raise SpaceError(f"predict got {value!r}, which is no array: {error}") from None
        where = f" for '{name}'" if name else ""
        if array.dtype.kind not in "biuf":
            raise SpaceError(f"predict got {value!r}{where}, expected numbers of {self.space}")
        self._check_range(array, where)
        if array.shape == self._shape:
            return True
        if array.shape[1:] == self._shape and array.ndim == len(self._shape) + 1:
            return False
        raise SpaceError(
            f"predict got an observation of shape {array.shape}{where}, expected {self._shape} "
            f"for one observation or (n, {', '.join(map(str, self._shape))}) for n of them, "
            f"as in {self.space}"
        )

    def _check_range(self, array: NDArray[Any], where: str) -> None:
        if array.dtype.kind == "f" and not all_finite(array):
            raise SpaceError(f"predict got NaN or infinity{where}, expected finite numbers")
        if isinstance(self.space, spaces.Discrete):
            start, end = int(self.space.start), int(self.space.start + self.space.n)
            if array.size and (array.min() < start or array.max() >= end):
                raise SpaceError(
                    f"predict got {array}{where}, expected whole numbers in [{start}, {end})"
                )


def is_image(space: spaces.Space[Any]) -> bool:
    """Returns whether a space is of pictures: a Box of uint8 with three axes.

    They are height, width and channels, or the channels come first: see `has_channels_first`.
    """
    return isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) == 3


def has_channels_first(shape: tuple[int, ...]) -> bool:
    """Returns whether the first axis of a picture is the shortest: channels, or stacked frames."""
    return shape[0] < min(shape[1:])


def _require_mask_size(came: int, expected: int | None) -> None:
    if came != expected:
        raise SpaceError(
            f"the observation's '{ACTION_MASK}' has {came} entries, expected {expected}: one for "
            f"each choice, those of a MultiDiscrete side by side"
        )


def _at(batch: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        batch = batch[key]
    return batch


def _leaves(
    space: spaces.Space[Any], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], _Leaf]]:
    if isinstance(space, spaces.Dict):
        for name, entry in space.spaces.items():
            yield from _leaves(entry, (*path, name))
    else:
        yield path, _leaf(space)


def _leaf(space: spaces.Space[Any]) -> _Leaf:
    if isinstance(space, spaces.Box):
        return _Leaf(space, int(np.prod(space.shape)), True, _flattened(space))
    if isinstance(space, spaces.Discrete):
        return _Leaf(space, int(space.n), False, _one_hot([int(space.n)], [int(space.start)]))
    if isinstance(space, spaces.MultiDiscrete):
        sizes, starts = (np.ravel(array).tolist() for array in (space.nvec, space.start))
        return _Leaf(space, sum(sizes), False, _one_hot(sizes, starts))
    if isinstance(space, spaces.MultiBinary):
        return _Leaf(space, int(np.prod(space.shape)), False, _flattened(space))
    raise SpaceError(
        f"observations of {space} are not supported; supported are Box, Discrete, MultiDiscrete, "
        f"MultiBinary and Dict of these. gymnasium.wrappers.FlattenObservation or "
        f"TransformObservation can turn others into a Box"
    )


def _flattened(space: spaces.Space[Any]) -> Callable[[NDArray[Any]], FloatArray]:
    # float64 stays float64 until it is normalized, see ObservationNormalizer.
    dtype = np.float64 if space.dtype in (np.float64, np.int64, np.uint64) else np.float32
    width = int(np.prod(space.shape or ()))

    def encode(batch: NDArray[Any]) -> FloatArray:
        return batch.reshape(len(batch), width).astype(dtype, copy=False)

    return encode


def _one_hot(sizes: list[int], starts: list[int]) -> Callable[[NDArray[Any]], FloatArray]:
    width = sum(sizes)
    # Where each component's first column is, less the value that its first column stands for.
    offsets = np.cumsum([0, *sizes[:-1]]) - np.array(starts)
    first, limits = np.array(starts, np.int64), np.array(sizes, np.uint64)

    def encode(batch: NDArray[Any]) -> FloatArray:
        rows = np.zeros((len(batch), width), np.float32)
        values = batch.reshape(len(batch), len(sizes)).astype(np.int64)
        # As unsigned numbers, those below the start are too large as well.
        if ((values - first).view(np.uint64) >= limits).any():
            _raise_outside(values, sizes, starts)
        np.put_along_axis(rows, values + offsets, 1.0, axis=1)
        return rows

    return encode


def _raise_outside(values: NDArray[np.int64], sizes: list[int], starts: list[int]) -> Never:
    distance = values - np.array(starts)
    row, column = np.argwhere((distance < 0) | (distance >= np.array(sizes)))[0]
    start = starts[column]
    raise SpaceError(
        f"observation {row} of the batch has {values[row, column]} where its space allows whole "
        f"numbers in [{start}, {start + sizes[column]}); let reset and step return elements of "
        f"observation_space"
    )


def _entry(observation: Any, path: tuple[str, ...], space: spaces.Space[Any]) -> Any:
    for key in path:
        if not isinstance(observation, dict) or key not in observation:
            came = (
                list(observation) if isinstance(observation, dict) else type(observation).__name__
            )
            raise SpaceError(
                f"predict got {came}, expected a dict with the entry '{'.'.join(path)}' of {space}"
            )
        observation = observation[key]
    return observation


def _add_axis(observation: Any) -> Any:
    if isinstance(observation, dict):
        return {key: _add_axis(value) for key, value in observation.items()}
    return np.asarray(observation)[None]
