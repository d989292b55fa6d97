"""How far a mean can be trusted."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

_RESAMPLES = 10_000


def bootstrap_interval(values: ArrayLike) -> NDArray[np.float64]:
    """Return the bounds that hold the mean with 95 % confidence: a percentile bootstrap.

    Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13. Always the same
    resamples are drawn, so that equal values have equal bounds.

    Args:
        values: Samples, shape [n, ...].

    Returns:
        Lower and upper bounds, shape [2, ...].
    """
    samples = np.asarray(values, np.float64)
    count = len(samples)
    chosen = np.random.default_rng(0).integers(count, size=(_RESAMPLES, count))
    # How often each sample was drawn, by how often the mean wants it: [resamples, n] @ [n, ...].
    weights = np.apply_along_axis(np.bincount, 1, chosen, minlength=count) / count
    means = np.tensordot(weights, samples, axes=1)
    bounds: NDArray[np.float64] = np.percentile(means, [2.5, 97.5], axis=0)
    return bounds
