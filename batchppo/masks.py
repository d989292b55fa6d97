"""Which choices are allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from batchppo.actions import ActionDistribution, Choices
from batchppo.errors import SpaceError

FORBIDDEN = -1e8
"""The logit of a choice that is not allowed: its probability is 0, and every sum stays finite."""


def mask_size(space: spaces.Space[Any]) -> int | None:
    """Returns how many entries a mask has, None where actions of a space cannot be masked."""
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if isinstance(space, spaces.MultiDiscrete):
        return int(space.nvec.sum())
    if isinstance(space, spaces.MultiBinary):
        return int(np.prod(space.shape))
    return None


def require_choices(mask: NDArray[np.bool_], distribution: ActionDistribution) -> None:
    """Raises SpaceError if a row allows nothing at all.

    Args:
        mask: shape [n, mask_size].
        distribution: whose actions are masked.
    """
    if not isinstance(distribution, Choices):
        return
    borders = np.cumsum((0, *distribution.counts))[:-1]
    allowed = np.logical_or.reduceat(mask, borders, axis=1).all(axis=1)
    if not allowed.all():
        row = int(np.argmin(allowed))
        raise SpaceError(
            f"the action mask of environment {row} allows no choice at all: {mask[row].astype(int)}"
        )


def as_masks(masks: Any, rows: int, distribution: ActionDistribution) -> NDArray[np.bool_]:
    """Returns a user's masks as an array of shape [rows, mask_size].

    Raises:
        SpaceError: masks of another shape, or for actions that cannot be masked.
    """
    size = mask_size(distribution.space)
    if size is None:
        raise SpaceError(f"actions of {distribution.space} cannot be masked")
    array = np.asarray(masks, np.bool_)
    if array.size != rows * size:
        raise SpaceError(
            f"action_masks has shape {array.shape}, expected ({size},) for one observation or "
            f"({rows}, {size}) for {rows}"
        )
    array = array.reshape(rows, size)
    require_choices(array, distribution)
    return array
