"""Backpropagation through time against automatic differentiation of the plain equations."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from batchppo.cell_equations import EQUATIONS
from batchppo.recurrence import GATES, STATES, STEPS
from batchppo.through_time import run_through_time


def plain_lstm(gates, state, kernel):
    hidden, cell = tf.split(state, 2, axis=-1)
    i, f, g, o = tf.split(gates + hidden @ kernel, 4, axis=-1)
    cell = tf.sigmoid(f) * cell + tf.sigmoid(i) * tf.tanh(g)
    return tf.concat([tf.sigmoid(o) * tf.tanh(cell), cell], axis=-1)


def plain_gru(gates, state, kernel):
    gates_z, gates_r, gates_n = tf.split(gates, 3, axis=-1)
    kernel_z, kernel_r, kernel_n = tf.split(kernel, 3, axis=-1)
    z = tf.sigmoid(gates_z + state @ kernel_z)
    r = tf.sigmoid(gates_r + state @ kernel_r)
    return z * state + (1.0 - z) * tf.tanh(gates_n + (r * state) @ kernel_n)


PLAIN = {"lstm": plain_lstm, "gru": plain_gru}


def plain_run(kind, gates, state, starts, kernel):
    states = []
    for t in range(gates.shape[0]):
        state = PLAIN[kind](gates[t], tf.where(starts[t][:, None], 0.0, state), kernel)
        states.append(state)
    return tf.stack(states)


def fast_run(kind, gates, state, starts, kernel):
    return run_through_time(EQUATIONS[kind], gates, state, starts, kernel)


def draw(kind, seed, steps, sequences, width, p_start=0.3):
    rng = np.random.default_rng(seed)
    shapes = {
        "gates": (steps, sequences, GATES[kind] * width),
        "state": (sequences, STATES[kind] * width),
        "kernel": (width, GATES[kind] * width),
        "weights": (steps, sequences, STATES[kind] * width),
    }
    arrays = {name: tf.constant(rng.normal(size=s).astype("f")) for name, s in shapes.items()}
    return arrays, tf.constant(rng.random((steps, sequences)) < p_start)


def gradients(run, kind, arrays, starts):
    """The states and the gradients of a sum in which each number of each state weighs otherwise."""
    gates, state, kernel = arrays["gates"], arrays["state"], arrays["kernel"]
    with tf.GradientTape() as tape:
        tape.watch([gates, state, kernel])
        states = run(kind, gates, state, starts, kernel)
        loss = tf.reduce_sum(states * arrays["weights"])
    return [states, *tape.gradient(loss, [gates, state, kernel])]


@settings(max_examples=15, deadline=None)
@given(
    kind=st.sampled_from(["lstm", "gru"]),
    seed=st.integers(0, 2**16),
    steps=st.integers(1, 6),
    sequences=st.integers(1, 4),
    width=st.integers(1, 5),
)
def test_states_and_gradients_are_those_of_automatic_differentiation(
    kind, seed, steps, sequences, width
):
    arrays, starts = draw(kind, seed, steps, sequences, width)
    expected = gradients(plain_run, kind, arrays, starts)
    found = gradients(fast_run, kind, arrays, starts)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_a_step_is_the_one_that_acts(kind):
    arrays, _ = draw(kind, 0, 1, 3, 4)
    gates, state, kernel = arrays["gates"][0], arrays["state"], arrays["kernel"]
    found, _ = EQUATIONS[kind].forward(gates, state, kernel)
    expected = STEPS[kind](gates.numpy(), state.numpy(), kernel.numpy())
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_nothing_before_a_start_gets_a_gradient(kind):
    arrays, _ = draw(kind, 0, 4, 2, 3)
    starts = tf.constant([[False, False], [False, False], [True, False], [False, False]])
    only_last = tf.one_hot([3], 4)[0][:, None, None]
    arrays["weights"] = arrays["weights"] * only_last
    _, d_gates, d_state, _ = gradients(fast_run, kind, arrays, starts)
    assert not np.any(d_gates.numpy()[:2, 0])
    assert not np.any(d_state.numpy()[0])
    assert np.all(d_gates.numpy()[:2, 1] != 0)
    assert np.any(d_state.numpy()[1])


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_xla_and_the_plain_graph_give_the_same(kind):
    arrays, starts = draw(kind, 0, 5, 3, 4)
    plain = tf.function(lambda: gradients(fast_run, kind, arrays, starts))()
    compiled = tf.function(lambda: gradients(fast_run, kind, arrays, starts), jit_compile=True)()
    for one, other in zip(plain, compiled, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
