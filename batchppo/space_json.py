"""Spaces as JSON, so that a model file can hold them without pickle."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from batchppo.errors import SpaceError

_MOST_NUMBERS = 2**26
"""The largest element of a space that a document may claim; larger ones would only take memory."""


def space_to_json(space: spaces.Space[Any]) -> dict[str, Any]:
    """Returns a space as a JSON object.

    Raises:
        SpaceError: a space that a model file cannot hold.
    """
    if isinstance(space, spaces.Box):
        low, high = _bound_to_json(space.low), _bound_to_json(space.high)
        return {"type": "Box", "low": low, "high": high, **_shape_and_type(space)}
    if isinstance(space, spaces.Discrete):
        return {"type": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        nvec, start = space.nvec.tolist(), space.start.tolist()
        return {"type": "MultiDiscrete", "nvec": nvec, "start": start, "dtype": space.dtype.name}
    if isinstance(space, spaces.MultiBinary):
        # MultiBinary(4) and MultiBinary([4]) are not equal, though their elements are.
        n = list(space.n) if isinstance(space.n, Sequence) else int(space.n)
        return {"type": "MultiBinary", "n": n}
    if isinstance(space, spaces.Dict):
        entries = [[name, space_to_json(entry)] for name, entry in space.spaces.items()]
        return {"type": "Dict", "spaces": entries}
    raise SpaceError(
        f"{space} cannot be stored in a model file; supported are Box, Discrete, MultiDiscrete, "
        f"MultiBinary and Dict of these"
    )


def space_from_json(document: Mapping[str, Any]) -> spaces.Space[Any]:
    """Returns the space that `space_to_json` wrote.

    Raises:
        SpaceError: the document describes no space.
    """
    try:
        return _READERS[document["type"]](document)
    except (KeyError, TypeError, ValueError, AssertionError, OverflowError) as error:
        raise SpaceError(f"{str(document)[:200]} does not describe a space: {error!r}") from error


def _shape_and_type(space: spaces.Box) -> dict[str, Any]:
    return {"shape": list(space.shape), "dtype": space.dtype.name}


def _bound_to_json(bound: NDArray[Any]) -> Any:
    """Returns one number for a uniform bound, a flat list otherwise; infinity as text."""
    flat = bound.ravel()
    if flat.size and (flat == flat[0]).all():
        return _number_to_json(flat[0])
    return [_number_to_json(number) for number in flat]


def _number_to_json(number: Any) -> Any:
    value = number.item()
    return str(value) if isinstance(value, float) and np.isinf(value) else value


def _bound_from_json(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    numbers = value if isinstance(value, list) else [value]
    array = np.array([float(n) if isinstance(n, str) else n for n in numbers], dtype)
    return np.full(shape, array[0], dtype) if len(array) == 1 else array.reshape(shape)


def _require_size(size: int) -> None:
    if size > _MOST_NUMBERS:
        raise ValueError(f"an element of {size:,} numbers, at most {_MOST_NUMBERS:,} are allowed")


def _box(document: Mapping[str, Any]) -> spaces.Space[Any]:
    _require_size(math.prod(document["shape"]))
    shape, dtype = tuple(document["shape"]), np.dtype(document["dtype"])
    low, high = (_bound_from_json(document[name], shape, dtype) for name in ("low", "high"))
    return spaces.Box(low, high, shape, dtype.type)


def _discrete(document: Mapping[str, Any]) -> spaces.Space[Any]:
    _require_size(document["n"])
    return spaces.Discrete(document["n"], start=document["start"])


def _multi_discrete(document: Mapping[str, Any]) -> spaces.Space[Any]:
    dtype = np.dtype(document["dtype"])
    _require_size(int(np.sum(np.array(document["nvec"], np.float64))))
    nvec, start = (np.array(document[name], dtype) for name in ("nvec", "start"))
    return spaces.MultiDiscrete(nvec, dtype=dtype.type, start=start)


def _multi_binary(document: Mapping[str, Any]) -> spaces.Space[Any]:
    n = document["n"]
    _require_size(math.prod(n) if isinstance(n, list) else n)
    return spaces.MultiBinary(n)


def _dict(document: Mapping[str, Any]) -> spaces.Space[Any]:
    # As pairs, since a plain dict would be sorted and the columns of an observation reordered.
    return spaces.Dict([(name, space_from_json(entry)) for name, entry in document["spaces"]])


_READERS: dict[str, Callable[[Mapping[str, Any]], spaces.Space[Any]]] = {
    "Box": _box,
    "Discrete": _discrete,
    "MultiDiscrete": _multi_discrete,
    "MultiBinary": _multi_binary,
    "Dict": _dict,
}
