"""Which rows of a rollout make which minibatch, in arrays of one shape."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Minibatches(NamedTuple):
    """The rows of all epochs' minibatches; only the first `total` minibatches are to be used.

    Attributes:
        rows: indices into the rollout's rows, shape [n_epochs * capacity, batch_size], int32.
        weights: 1 where a row counts and 0 where it is padding, the same shape, float32.
        total: how many minibatches there are over all epochs.
        per_epoch: how many of them make one epoch.
    """

    rows: NDArray[np.int32]
    weights: NDArray[np.float32]
    total: int
    per_epoch: int


def shuffled_minibatches(
    valid_rows: NDArray[np.integer],
    capacity: int,
    batch_size: int,
    n_epochs: int,
    rng: np.random.Generator,
) -> Minibatches:
    """Returns every valid row once an epoch, in a fresh order each epoch.

    The rows are dealt evenly: 1,025 rows in minibatches of at most 256 are five of 205, never four
    of 256 and one of a single row, whose advantage could not be normalized. The arrays' shape
    depends on `capacity` alone, so that a compiled update never sees another one.

    Args:
        valid_rows: the rows to use, shape [n] with n >= 1.
        capacity: how many rows a rollout has at the most, n included.
        batch_size: the most rows a minibatch may have.
        n_epochs: how many times each row is used.
        rng: the source of the order.
    """
    size = min(batch_size, capacity)
    per_epoch = math.ceil(len(valid_rows) / size)
    shape = (n_epochs * math.ceil(capacity / size), size)
    rows = np.zeros(shape, np.int32)
    weights = np.zeros(shape, np.float32)
    # The borders of `per_epoch` nearly equal runs, as positions in one shuffled epoch.
    borders = np.arange(per_epoch + 1) * len(valid_rows) // per_epoch
    columns = np.arange(size)
    filled = columns < np.diff(borders)[:, None]
    positions = np.minimum(borders[:-1, None] + columns, len(valid_rows) - 1)
    for epoch in range(n_epochs):
        block = slice(epoch * per_epoch, (epoch + 1) * per_epoch)
        rows[block] = rng.permutation(valid_rows)[positions]
        weights[block] = filled
    return Minibatches(rows, weights, n_epochs * per_epoch, per_epoch)
