"""A dense network in NumPy: how dense policies act, with and without TensorFlow installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchppo.actions import LOG_STD_BOUNDS, MIN_RAW_STD
from batchppo.activations import NUMPY_ACTIVATIONS
from batchppo.inputs import VECTOR, Inputs

Array = NDArray[np.float32]


class DenseNetwork:
    """Hidden layers with one activation, then an output layer.

    On a few rows this is an order of magnitude faster than calling a TensorFlow function.

    Args:
        layers: (kernel [inputs, outputs], bias [outputs]) of each layer.
        activation: the hidden layers' activation, by name.
        tanh_size: how many outputs, the first ones, go through tanh; the others are linear.

    Attributes:
        state_size: 0, since it remembers nothing.
    """

    def __init__(
        self, layers: Sequence[tuple[Array, Array]], activation: str, tanh_size: int = 0
    ) -> None:
        *self._hidden, self._output = layers
        self._activate = NUMPY_ACTIVATIONS[activation]
        self._tanh_size = tanh_size

    state_size = 0

    def __call__(self, inputs: Inputs, state: Array | None = None) -> tuple[Array, None]:
        """Returns the outputs, shape [n, outputs], and no state.

        Args:
            inputs: whose vector, shape [n, inputs], is read.
            state: None; here so that all policy networks are called alike.
        """
        del state
        return self.outputs(self.hidden(inputs[VECTOR])), None

    def hidden(self, rows: Array) -> Array:
        """Returns what the output layer reads, shape [n, features], for rows [n, inputs]."""
        return apply_dense(self._hidden, self._activate, rows)

    def outputs(self, latent: Array) -> Array:
        """Returns what the output layer makes of the features, shape [n, outputs]."""
        kernel, bias = self._output
        outputs = latent @ kernel
        outputs += bias
        if self._tanh_size:
            bounded = outputs[:, : self._tanh_size]
            np.tanh(bounded, out=bounded)
        return outputs


class ExploringNetwork(DenseNetwork):
    """A dense network whose noise depends on the state.

    Args:
        layers: (kernel [inputs, outputs], bias [outputs]) of each layer.
        activation: the hidden layers' activation, by name.
        tanh_size: how many outputs go through tanh: all or none.
        log_std: log-deviations of the noise, shape [features of the output layer, actions].
    """

    def __init__(
        self,
        layers: Sequence[tuple[Array, Array]],
        activation: str,
        tanh_size: int,
        log_std: Array,
    ) -> None:
        super().__init__(layers, activation, tanh_size)
        self._deviation = np.exp(np.clip(log_std, *LOG_STD_BOUNDS))

    def __call__(self, inputs: Inputs, state: Array | None = None) -> tuple[Array, None]:
        """Returns means, log-deviations and scaled features side by side, and no state."""
        del state
        latent = self.hidden(inputs[VECTOR])
        variance = np.square(latent) @ np.square(self._deviation)
        scaled = (latent[:, :, None] * self._deviation).reshape(len(latent), -1)
        log_std = np.float32(0.5) * np.log(variance + np.float32(1e-6))
        return np.concatenate([self.outputs(latent), log_std, scaled], axis=1), None


def actor_network(
    weights: Mapping[str, NDArray[Any]], activation: str, mean_activation: str = "linear"
) -> DenseNetwork:
    """Returns the policy network that is made of a model's weights.

    A Gaussian's log-deviations do not depend on the observation. They join the output layer as
    biases behind kernels of zeros, so that one product gives all parameters.

    Args:
        weights: arrays by name: `actor/<layer>/kernel`, `actor/<layer>/bias` with layers counted
            from 0, and for a Gaussian `log_std` or `raw_std`, shape [actions], or
            [features, actions] where noise depends on the state.
        activation: the hidden layers' activation, by name.
        mean_activation: "linear", or "tanh" for a Gaussian's means.
    """
    layers = dense_layers(weights, "actor")
    kernel, bias = layers[-1]
    tanh_size = len(bias) if mean_activation == "tanh" else 0
    log_std = log_deviations(weights)
    if log_std is not None and log_std.ndim == 2:
        return ExploringNetwork(layers, activation, tanh_size, log_std)
    if log_std is not None:
        layers[-1] = (
            np.concatenate([kernel, np.zeros_like(kernel)], axis=1),
            np.concatenate([bias, log_std]),
        )
    return DenseNetwork(layers, activation, tanh_size)


def apply_dense(
    layers: Sequence[tuple[Array, Array]], activate: Callable[[Array], Array], rows: Array
) -> Array:
    """Returns what layers with one activation, one after the other, make of rows [n, inputs]."""
    for kernel, bias in layers:
        rows = rows @ kernel
        rows += bias
        rows = activate(rows)
    return rows


def dense_layers(weights: Mapping[str, NDArray[Any]], prefix: str) -> list[tuple[Array, Array]]:
    """Returns kernel and bias of the layers that are stored under `<prefix>/<layer>/...`."""
    count = sum(name.startswith(f"{prefix}/") and name.endswith("/kernel") for name in weights)
    return [(weights[f"{prefix}/{i}/kernel"], weights[f"{prefix}/{i}/bias"]) for i in range(count)]


def log_deviations(weights: Mapping[str, NDArray[Any]]) -> Array | None:
    """Returns a Gaussian's log-deviations; None for other distributions."""
    raw = weights.get("raw_std")
    if raw is None:
        return weights.get("log_std")
    softplus = np.logaddexp(np.maximum(raw, np.float32(MIN_RAW_STD)), np.float32(0.0))
    return np.asarray(np.log(softplus), np.float32)
