"""Whether an array holds only finite numbers, asked in every step."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def all_finite(values: NDArray[np.floating]) -> bool:
    """Returns whether no number is NaN or infinite."""
    # The sum of squares takes half the time, and is finite if they are; it may overflow, though.
    return math.isfinite(np.vdot(values, values)) or bool(np.isfinite(values).all())
