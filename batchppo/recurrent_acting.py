"""A policy with memory that acts in NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchppo.activations import NUMPY_ACTIVATIONS
from batchppo.architecture import Architecture
from batchppo.dense import DenseNetwork, actor_network, apply_dense, dense_layers
from batchppo.inputs import EPISODE_START, VECTOR, Inputs
from batchppo.recurrence import STATES, STEPS

Array = NDArray[np.float32]


class RecurrentNetwork:
    """A recurrent cell in front of a dense network.

    Args:
        cell: "lstm" or "gru".
        weights: `actor_cell/kernel`, `actor_cell/recurrent_kernel` and `actor_cell/bias`, those of
            dense layers before it (`actor_front/<layer>/kernel`, ...) where there are any, and the
            dense network's as in `actor_network`.
        activation: the dense layers' activation, by name.
        mean_activation: as in `actor_network`.

    Attributes:
        state_size: the length of a state.
    """

    def __init__(
        self,
        cell: str,
        weights: Mapping[str, NDArray[Any]],
        activation: str,
        mean_activation: str = "linear",
    ) -> None:
        self._front = dense_layers(weights, "actor_front")
        self._activate = NUMPY_ACTIVATIONS[activation]
        self._kernel = weights["actor_cell/kernel"]
        self._recurrent = weights["actor_cell/recurrent_kernel"]
        self._bias = weights["actor_cell/bias"]
        self._step = STEPS[cell]
        self._width = len(self._recurrent)
        self._head: DenseNetwork = actor_network(weights, activation, mean_activation)
        self.state_size = STATES[cell] * self._width

    def __call__(self, inputs: Inputs, state: Array | None) -> tuple[Array, Array]:
        """Returns the parameters, shape [n, parameters], and the next states, [n, state_size].

        Args:
            inputs: one step's, with `episode_start`, where the state begins anew at 0.
            state: the states before it; None for 0.
        """
        rows = apply_dense(self._front, self._activate, inputs[VECTOR])
        gates = rows @ self._kernel + self._bias
        if state is None:
            state = np.zeros((len(gates), self.state_size), np.float32)
        state = np.where(inputs[EPISODE_START][:, None], np.float32(0.0), state)
        state = np.asarray(self._step(gates, state, self._recurrent), np.float32)
        parameters, _ = self._head({VECTOR: state[:, : self._width]}, None)
        return parameters, state


def numpy_network(
    weights: Mapping[str, NDArray[Any]], architecture: Architecture
) -> DenseNetwork | RecurrentNetwork:
    """Returns the acting network of an architecture without images, with memory or without."""
    activations = architecture.activation, architecture.mean_activation
    if architecture.cell is None:
        return actor_network(weights, *activations)
    return RecurrentNetwork(architecture.cell, weights, *activations)
