"""Recurrent cells in NumPy, for acting.

A state is one vector: an LSTM's is its output h followed by its cell c, a GRU's is h. The gates'
share of the input, x W + b, is given: it can be computed for a whole sequence at once.
`recurrent_networks.py` has the same cells in TensorFlow, for learning.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]

CELLS = ("lstm", "gru")
GATES = {"lstm": 4, "gru": 3}
"""How many gates a cell has: i, f, g, o of an LSTM; z, r, n of a GRU."""

STATES = {"lstm": 2, "gru": 1}
"""How many vectors of the cell's width its state has."""


def lstm_step(gates: Array, state: Array, kernel: Array) -> Array:
    """Returns the next state of an LSTM with a forget gate (Gers et al. 2000).

    i, f, g, o = gates + h U;  c' = sigmoid(f) c + sigmoid(i) tanh(g);  h' = sigmoid(o) tanh(c').

    Args:
        gates: x W + b, shape [n, 4 width].
        state: h and c, shape [n, 2 width].
        kernel: U, shape [width, 4 width].
    """
    hidden, cell = np.split(state, 2, axis=-1)
    i, f, g, o = np.split(gates + hidden @ kernel, 4, axis=-1)
    cell = _sigmoid(f) * cell + _sigmoid(i) * np.tanh(g)
    return np.concatenate([_sigmoid(o) * np.tanh(cell), cell], axis=-1)


def gru_step(gates: Array, state: Array, kernel: Array) -> Array:
    """Returns the next state of a gated recurrent unit (Cho et al. 2014).

    z, r = gates_zr + h U_zr;  n = tanh(gates_n + (sigmoid(r) h) U_n);
    h' = sigmoid(z) h + (1 - sigmoid(z)) n.

    Args:
        gates: x W + b, shape [n, 3 width].
        state: h, shape [n, width].
        kernel: U, shape [width, 3 width].
    """
    width = state.shape[-1]
    update_reset = _sigmoid(gates[:, : 2 * width] + state @ kernel[:, : 2 * width])
    z, r = np.split(update_reset, 2, axis=-1)
    candidate = np.tanh(gates[:, 2 * width :] + (r * state) @ kernel[:, 2 * width :])
    return np.asarray(z * state + (1.0 - z) * candidate)


STEPS = {"lstm": lstm_step, "gru": gru_step}


def _sigmoid(x: Array) -> Array:
    return np.asarray(np.float32(0.5) * (np.tanh(np.float32(0.5) * x) + np.float32(1.0)))
