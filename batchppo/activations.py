"""The hidden layers' activations, in NumPy, under the names that Keras gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchppo.errors import did_you_mean

Array = NDArray[np.float32]


def _sigmoid(x: Array) -> Array:
    # tanh does not overflow where exp would.
    result: Array = np.float32(0.5) * (np.tanh(np.float32(0.5) * x) + np.float32(1.0))
    return result


def _elu(x: Array) -> Array:
    return np.where(x > 0, x, np.expm1(np.minimum(x, np.float32(0.0))))


def _softplus(x: Array) -> Array:
    return np.logaddexp(x, np.float32(0.0))


NUMPY_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "tanh": lambda x: np.tanh(x, out=x),
    "relu": lambda x: np.maximum(x, np.float32(0.0), out=x),
    "elu": _elu,
    "leaky_relu": lambda x: np.where(x > 0, x, np.float32(0.2) * x),
    "sigmoid": _sigmoid,
    "silu": lambda x: x * _sigmoid(x),
    "softplus": _softplus,
    "linear": lambda x: x,
}
"""From name to function; a function may write into its argument."""

_ALIASES = {"swish": "silu", "identity": "linear", "leakyrelu": "leaky_relu"}


def activation_name(activation: Any) -> str:
    """Returns the name of an activation.

    Args:
        activation: a name in any case, or anything whose `__name__` is one: `keras.ops.relu`,
            `tf.nn.elu`, or the class `torch.nn.ReLU` of a Stable-Baselines3 script.

    Raises:
        ValueError: no activation that is known by that name.
    """
    given = activation if isinstance(activation, str) else getattr(activation, "__name__", "")
    name = _ALIASES.get(given.lower(), given.lower())
    if name not in NUMPY_ACTIVATIONS:
        known = ", ".join(NUMPY_ACTIVATIONS)
        raise ValueError(
            f"unknown activation {activation!r}.{did_you_mean(name, NUMPY_ACTIVATIONS)} "
            f"Known are: {known}"
        )
    return name
