"""Checks what callers pass to `reset` before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Seeds = int | np.integer[Any] | Sequence[int | None] | npt.NDArray[np.integer[Any]] | None


def spread_seeds(seed: Seeds, num_envs: int) -> list[int | None]:
    """Returns one seed per environment: `seed + i` for an integer.

    Raises:
        ValueError: If a sequence has another length.
        TypeError: If it is neither.
    """
    if seed is None:
        return [None] * num_envs
    if isinstance(seed, (int, np.integer)):
        return [int(seed) + i for i in range(num_envs)]
    try:
        seeds = [None if one is None else int(one) for one in seed]
    except TypeError:
        raise TypeError(
            f"`seed` must be None, an integer or one seed per environment, got {seed!r}."
        ) from None
    if len(seeds) != num_envs:
        raise ValueError(
            f"If seeds are passed as a list the length must match num_envs={num_envs} but got "
            f"length={len(seeds)}."
        )
    return seeds


def split_options(
    options: dict[str, Any] | None, num_envs: int
) -> tuple[dict[str, Any] | None, npt.NDArray[np.bool_] | None]:
    """Takes `reset_mask` out of a copy of the options; the caller's dictionary stays as it is.

    Raises:
        TypeError: If the mask is no boolean array.
        ValueError: If it is of another shape or selects nothing.
    """
    if options is None or "reset_mask" not in options:
        return options, None
    options = dict(options)
    mask = options.pop("reset_mask")
    if not isinstance(mask, np.ndarray):
        raise TypeError(f"`options['reset_mask']` must be a numpy array, got {type(mask)}")
    if mask.shape != (num_envs,):
        raise ValueError(
            f"`options['reset_mask']` must have shape `({num_envs},)`, got {mask.shape}"
        )
    if mask.dtype != np.bool_:
        raise TypeError(f"`options['reset_mask']` must have `dtype=np.bool_`, got {mask.dtype}")
    if not mask.any():
        raise ValueError(
            "`options['reset_mask']` must contain a boolean array with at least one True value, "
            f"got reset_mask={mask}"
        )
    return options, mask
