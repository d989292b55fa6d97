"""Recurrent cells and their derivatives in TensorFlow, for learning.

`recurrence.py` has the same equations in NumPy, for acting. A state is one vector: an LSTM's is its
output h followed by its cell c, a GRU's is h. In the derivatives, `d` before a name is the gradient
of the loss with respect to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf


class CellEquations(NamedTuple):
    """One step of a cell and its derivatives.

    n is the number of sequences; the gates' share of the input, x W + b, has shape [n, gates].

    Attributes:
        forward: from gates, the state before, [n, state], and the kernel U, [width, gates], to the
            state behind and what the derivatives need, [n, kept].
        backward: from the gradient of the state behind, the state before, what `forward` kept and
            U to the gradients of the state before and of the gates.
        kernel_inputs: from the states before and what `forward` kept, of any number of rows, to
            what U was multiplied by, one array per block of U's columns.
        kept: how many numbers `forward` keeps, in widths.
    """

    forward: Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]
    backward: Callable[[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]
    kernel_inputs: Callable[[tf.Tensor, tf.Tensor], list[tuple[tf.Tensor, int]]]
    kept: int


def lstm_forward(
    gates: tf.Tensor, state: tf.Tensor, kernel: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the next state of an LSTM with a forget gate (Gers et al. 2000), and i, f, g, o, t.

    i, f, g, o = gates + h U, then g goes through tanh, the others through the logistic function;
    c' = f c + i g;  t = tanh(c');  h' = o t.
    """
    hidden, cell = tf.split(state, 2, axis=-1)
    i, f, g, o = tf.split(gates + hidden @ kernel, 4, axis=-1)
    i, f, g, o = tf.sigmoid(i), tf.sigmoid(f), tf.tanh(g), tf.sigmoid(o)
    cell = f * cell + i * g
    squashed = tf.tanh(cell)
    return tf.concat([o * squashed, cell], -1), tf.concat([i, f, g, o, squashed], -1)


def lstm_backward(
    d_state: tf.Tensor, state: tf.Tensor, kept: tf.Tensor, kernel: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the gradients of the state before and of the gates.

    dc' += dh' o (1 - t^2);  di = dc' g i (1 - i);  df = dc' c f (1 - f);  dg = dc' i (1 - g^2);
    do = dh' t o (1 - o);  dh = (di, df, dg, do) U^T;  dc = dc' f.
    """
    _, cell = tf.split(state, 2, axis=-1)
    i, f, g, o, squashed = tf.split(kept, 5, axis=-1)
    d_hidden, d_cell = tf.split(d_state, 2, axis=-1)
    d_cell += d_hidden * o * (1.0 - tf.square(squashed))
    d_gates = tf.concat(
        [
            d_cell * g * i * (1.0 - i),
            d_cell * cell * f * (1.0 - f),
            d_cell * i * (1.0 - tf.square(g)),
            d_hidden * squashed * o * (1.0 - o),
        ],
        axis=-1,
    )
    d_before = tf.matmul(d_gates, kernel, transpose_b=True)
    return tf.concat([d_before, d_cell * f], -1), d_gates


def lstm_kernel_inputs(state: tf.Tensor, kept: tf.Tensor) -> list[tuple[tf.Tensor, int]]:
    """Returns h, which all four gates read."""
    del kept
    return [(tf.split(state, 2, axis=-1)[0], 4)]


def gru_forward(
    gates: tf.Tensor, state: tf.Tensor, kernel: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the next state of a gated recurrent unit (Cho et al. 2014), and z, r, n.

    z, r = sigmoid(gates_zr + h U_zr);  n = tanh(gates_n + (r h) U_n);  h' = z h + (1 - z) n.
    """
    width = state.shape[-1]
    update_reset = tf.sigmoid(gates[:, : 2 * width] + state @ kernel[:, : 2 * width])
    z, r = tf.split(update_reset, 2, axis=-1)
    candidate = tf.tanh(gates[:, 2 * width :] + (r * state) @ kernel[:, 2 * width :])
    return z * state + (1.0 - z) * candidate, tf.concat([update_reset, candidate], -1)


def gru_backward(
    d_state: tf.Tensor, state: tf.Tensor, kept: tf.Tensor, kernel: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the gradients of the state before and of the gates.

    dz = dh' (h - n) z (1 - z);  dn = dh' (1 - z) (1 - n^2);  d(r h) = dn U_n^T;
    dr = d(r h) h r (1 - r);  dh = dh' z + d(r h) r + (dz, dr) U_zr^T.
    """
    width = state.shape[-1]
    z, r, candidate = tf.split(kept, 3, axis=-1)
    dz = d_state * (state - candidate) * z * (1.0 - z)
    dn = d_state * (1.0 - z) * (1.0 - tf.square(candidate))
    d_gated = tf.matmul(dn, kernel[:, 2 * width :], transpose_b=True)
    dr = d_gated * state * r * (1.0 - r)
    d_update_reset = tf.concat([dz, dr], -1)
    d_before = d_state * z + d_gated * r
    d_before += tf.matmul(d_update_reset, kernel[:, : 2 * width], transpose_b=True)
    return d_before, tf.concat([d_update_reset, dn], -1)


def gru_kernel_inputs(state: tf.Tensor, kept: tf.Tensor) -> list[tuple[tf.Tensor, int]]:
    """Returns h, which z and r read, and r h, which n reads."""
    reset = tf.split(kept, 3, axis=-1)[1]
    return [(state, 2), (reset * state, 1)]


EQUATIONS = {
    "lstm": CellEquations(lstm_forward, lstm_backward, lstm_kernel_inputs, kept=5),
    "gru": CellEquations(gru_forward, gru_backward, gru_kernel_inputs, kept=3),
}
