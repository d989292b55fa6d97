"""The compiled update against a plain loop, and its promises."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

from batchppo.actions import action_distribution
from batchppo.architecture import Architecture
from batchppo.compilation import compiled
from batchppo.config import PPOConfig
from batchppo.distributions import tensor_distribution
from batchppo.errors import ModelFileError
from batchppo.layout import in_chunks
from batchppo.minibatches import Minibatches, shuffled_minibatches
from batchppo.networks import ActorCritic
from batchppo.observations import ObservationEncoder
from batchppo.update import Batch, Coefficients, Updater, Warmup

ROWS, SIZE = 64, 3
SPACES = {"box": spaces.Box(-1, 1, (2,), np.float32), "discrete": spaces.Discrete(4)}
ENCODER = ObservationEncoder(spaces.Box(-1, 1, (SIZE,), np.float32))
COEFFICIENTS = Coefficients(1e-2, 0.2, 0.3, 0.01, 0.5, 1.0)


def make_updater(space="discrete", seed=0, jit_compile=False, **config):
    distribution = action_distribution(SPACES[space])
    architecture = Architecture(pi=(8,), vf=(8,))
    network = ActorCritic(ENCODER, distribution, architecture, seed)
    config = PPOConfig(**{"batch_size": 16, "n_epochs": 2, **config})
    learning = tensor_distribution(distribution)
    return Updater(network, learning, config, adam_epsilon=1e-5, jit_compile=jit_compile)


def make_batch(updater, space="discrete", seed=1):
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((ROWS + 1, SIZE), np.float32)
    distribution = action_distribution(SPACES[space])
    parameters = updater._network.parameters(vector(inputs[:-1])).numpy()
    actions = distribution.sample(parameters, distribution.draw_noise(rng, (ROWS,)))
    log_prob = updater._distribution.log_prob(tf.constant(parameters), tf.constant(actions))
    values = updater._network.values(vector(inputs[:-1])).numpy()
    advantages = rng.standard_normal(ROWS).astype(np.float32)
    return Batch(
        {"vector": inputs[:-1]},
        actions,
        parameters,
        log_prob.numpy(),
        values,
        advantages,
        advantages + values,
        np.ones(ROWS, np.float32),
    )


def vector(inputs):
    return {"vector": tf.constant(inputs)}


def minibatches(valid=ROWS, batch_size=16, n_epochs=2, seed=2):
    rng = np.random.default_rng(seed)
    return shuffled_minibatches(np.arange(valid), ROWS, batch_size, n_epochs, rng)


def plain_update(updater, batch, chosen, coefficients):
    """The same update, one minibatch after the other, with no padding and nothing compiled."""
    network, learning = updater._network, updater._distribution
    variables = network.trainable_variables
    optimizer = keras.optimizers.Adam(coefficients.learning_rate, epsilon=1e-5)
    for rows, weights in zip(chosen.rows[: chosen.total], chosen.weights, strict=False):
        part = tf.nest.map_structure(lambda c, r=rows[weights == 1]: tf.constant(c[r]), batch)
        advantages = part.advantages
        advantages = (advantages - tf.reduce_mean(advantages)) / (
            tf.math.reduce_std(advantages) + 1e-8
        )
        with tf.GradientTape() as tape:
            parameters = network.parameters(part.inputs)
            ratio = tf.exp(learning.log_prob(parameters, part.actions) - part.old_log_prob)
            clipped = tf.clip_by_value(ratio, 0.8, 1.2)
            surrogate = tf.minimum(ratio * advantages, clipped * advantages)
            loss = (
                -tf.reduce_mean(surrogate)
                + 0.5 * tf.reduce_mean((network.values(part.inputs) - part.returns) ** 2)
                - 0.01 * tf.reduce_mean(learning.entropy(parameters))
            )
        gradients = tape.gradient(loss, [v.value for v in variables])
        gradients, _ = tf.clip_by_global_norm(gradients, 0.5)
        optimizer.apply(gradients, variables)


@pytest.mark.parametrize("space", SPACES)
def test_equals_a_plain_loop_over_the_valid_rows(space):
    xla = make_updater(space, jit_compile=True)
    batch = make_batch(xla, space)
    start, empty = xla._network.weights(), xla.optimizer_state()
    for valid in (ROWS, 50, 17):
        xla._network.set_weights(start)
        xla.restore_optimizer(empty)
        plain = make_updater(space)
        chosen = minibatches(valid)
        xla.update(batch, chosen, COEFFICIENTS)
        plain_update(plain, batch, chosen, COEFFICIENTS)
        for name, weights in xla._network.weights().items():
            assert weights == pytest.approx(plain._network.weights()[name], abs=2e-5), name
    assert xla.traces == 1


def test_graph_and_xla_agree():
    xla, graph = make_updater(jit_compile=True), make_updater()
    batch, chosen = make_batch(xla), minibatches()
    results = [updater.update(batch, chosen, COEFFICIENTS) for updater in (xla, graph)]
    assert results[0].means == pytest.approx(results[1].means, rel=1e-3, abs=1e-5)
    for name, weights in xla._network.weights().items():
        assert weights == pytest.approx(graph._network.weights()[name], abs=2e-5)


@pytest.mark.parametrize("space", SPACES)
def test_the_ratio_is_1_before_the_first_step(space):
    updater = make_updater(space, n_epochs=1)
    batch = make_batch(updater, space)
    parameters = updater._network.parameters(batch.inputs)
    log_prob = updater._distribution.log_prob(parameters, tf.constant(batch.actions)).numpy()
    assert np.exp(log_prob - batch.old_log_prob) == pytest.approx(1.0, abs=1e-5)
    one = minibatches(n_epochs=1, batch_size=ROWS)
    result = updater.update(batch, one, COEFFICIENTS)
    assert result.steps == 1
    assert result.means.approx_kl == pytest.approx(0.0, abs=1e-6)
    assert result.means.clip_fraction == 0.0


def test_one_trace_whatever_the_number_of_valid_rows():
    updater = make_updater(jit_compile=True)
    batch = make_batch(updater)
    for valid in (ROWS, 1, 2, 15, 16, 17, 63):
        result = updater.update(batch, minibatches(valid), COEFFICIENTS)
        assert result.steps == 2 * math.ceil(valid / 16)
    assert updater.traces == 1


def test_rows_that_do_not_count_change_nothing():
    updaters = [make_updater(), make_updater()]
    batch = make_batch(updaters[0])
    spoilt = tf.nest.map_structure(np.array, batch)
    for column in tf.nest.flatten(spoilt._replace(weights=())):
        column[40:] = 3 if column.dtype == np.int32 else 1e6
    for updater, rows in zip(updaters, (batch, spoilt), strict=True):
        updater.update(rows, minibatches(valid=40), COEFFICIENTS)
    for name, weights in updaters[0]._network.weights().items():
        assert np.array_equal(weights, updaters[1]._network.weights()[name])


def test_target_kl_ends_the_update_before_the_step():
    free, bounded = make_updater(n_epochs=8), make_updater(n_epochs=8, target_kl=0.01)
    batch, chosen = make_batch(free), minibatches(n_epochs=8)
    assert free.update(batch, chosen, COEFFICIENTS).steps == chosen.total
    result = bounded.update(batch, chosen, COEFFICIENTS)
    assert 0 < result.steps < chosen.total
    assert result.stopped_by_kl
    assert result.finite
    again = make_updater(n_epochs=8)
    again.update(batch, chosen._replace(total=result.steps), COEFFICIENTS)
    for name, weights in again._network.weights().items():
        assert np.array_equal(weights, bounded._network.weights()[name])


@pytest.mark.parametrize("column", ["inputs", "returns", "advantages"])
def test_an_update_that_is_not_finite_is_undone(column):
    updater = make_updater()
    before = updater._network.weights()
    batch = make_batch(updater)
    spoilt = batch.inputs["vector"] if column == "inputs" else getattr(batch, column)
    spoilt[5] = np.nan
    dealt = minibatches()
    result = updater.update(batch, dealt, COEFFICIENTS)
    assert not result.finite
    assert not result.stopped_by_kl
    # All minibatches were sound until the one that has row 5.
    assert result.steps == next(i for i, rows in enumerate(dealt.rows) if 5 in rows)
    for name, weights in updater._network.weights().items():
        assert np.array_equal(weights, before[name])
    assert all(not state.any() for state in list(updater.optimizer_state().values())[2:])
    name = updater.spoilt_gradient(batch, dealt, COEFFICIENTS, result.steps)
    assert name.startswith("critic" if column == "returns" else "actor")
    for name, weights in updater._network.weights().items():
        assert np.array_equal(weights, before[name])


def test_a_value_range_bounds_how_far_values_move():
    free, bounded = make_updater(n_epochs=10), make_updater(n_epochs=10, clip_range_vf=0.05)
    batch = make_batch(free)
    batch.returns[:] = 5.0
    tight = COEFFICIENTS._replace(clip_range_vf=0.05, vf_coef=10.0)
    moves = []
    for updater in (free, bounded):
        updater.update(batch, minibatches(n_epochs=10), tight)
        values = updater._network.values(batch.inputs).numpy()
        moves.append(np.abs(values - batch.old_values).mean())
    assert moves[1] < 0.5 * moves[0]


def test_an_infinite_gradient_norm_bound_is_none():
    with_bound, without = make_updater(max_grad_norm=1e9), make_updater(max_grad_norm=None)
    batch = make_batch(with_bound)
    for updater in (with_bound, without):
        updater.update(batch, minibatches(), COEFFICIENTS)
    for name, weights in with_bound._network.weights().items():
        assert weights == pytest.approx(without._network.weights()[name], abs=1e-6)


def test_values_of_any_number_of_rows():
    network = make_updater()._network
    inputs = np.random.default_rng(0).standard_normal((11, SIZE), np.float32)
    expected = network.values(vector(inputs)).numpy()
    function = compiled(network.values)
    for count in (0, 1, 4, 5, 11):
        got = in_chunks(function, {"vector": inputs[:count]}, chunk=4)
        assert got == pytest.approx(expected[:count], abs=1e-6)
    assert function.experimental_get_tracing_count() == 1


def test_warming_up_changes_no_weight():
    updater = make_updater()
    before = updater._network.weights()
    Warmup(lambda: updater.compile(make_batch(updater), minibatches())).wait()
    assert updater.traces == 1
    for name, weights in updater._network.weights().items():
        assert np.array_equal(weights, before[name])


def test_what_goes_wrong_while_warming_up_is_raised_by_wait():
    updater = make_updater()
    wrong = Minibatches(np.zeros((2, 2), np.int32), np.zeros((3, 5), np.float32), 0, 0)
    inputs = {"vector": np.zeros((ROWS, SIZE + 1), np.float32)}
    batch = make_batch(updater)._replace(inputs=inputs)
    with pytest.raises(Exception, match=r"."):
        Warmup(lambda: updater.compile(batch, wrong)).wait()


def test_optimizer_state_survives():
    one, two = make_updater(), make_updater()
    batch = make_batch(one)
    one.update(batch, minibatches(), COEFFICIENTS)
    two.restore_optimizer(one.optimizer_state())
    two._network.set_weights(one._network.weights())
    for updater in (one, two):
        updater.update(batch, minibatches(seed=5), COEFFICIENTS)
    for name, weights in one._network.weights().items():
        assert np.array_equal(weights, two._network.weights()[name])


def test_a_foreign_optimizer_state_is_refused_whole():
    updater = make_updater()
    state = updater.optimizer_state()
    before = {name: array.copy() for name, array in state.items()}
    last = max(state, key=int)
    with pytest.raises(ModelFileError, match=f"optimizer array {last}: .*got none"):
        updater.restore_optimizer({name: a + 1 for name, a in state.items() if name != last})
    assert all(np.array_equal(a, before[name]) for name, a in updater.optimizer_state().items())


def test_the_penalty_pulls_towards_the_old_policy():
    moved = []
    for penalty in (0.0, 100.0):
        updater = make_updater(n_epochs=8, objective="kl_penalty", kl_cutoff_coef=1e-3)
        batch = make_batch(updater)
        coefficients = COEFFICIENTS._replace(kl_penalty=penalty, ent_coef=0.0, vf_coef=0.0)
        updater.update(batch, minibatches(n_epochs=8), coefficients)
        moved.append(updater.mean_kl(batch))
    assert moved[1] < 0.2 * moved[0]


def test_the_penalty_objective_does_not_clip():
    batch = make_batch(make_updater())
    spread = batch._replace(old_log_prob=batch.old_log_prob - 1.0)  # every ratio is e
    one = minibatches(n_epochs=1, batch_size=ROWS)
    changed = []
    for objective in ("clip", "kl_penalty"):
        updater = make_updater(objective=objective, normalize_advantage=False, max_grad_norm=None)
        before = updater._network.weights()
        good = spread._replace(advantages=np.ones(ROWS, np.float32))
        nothing_else = Coefficients(1e-2, 0.2, np.inf, 0.0, 0.0, 0.0)
        updater.update(good, one, nothing_else)
        after = updater._network.weights()
        changed.append(any(not np.array_equal(before[n], after[n]) for n in before))
    assert changed == [False, True]
