"""PPO's terms by hand arithmetic."""

import math

import numpy as np
import pytest
import tensorflow as tf

from batchppo import losses


def tensor(*numbers):
    return tf.constant(numbers, tf.float32)


def test_weighted_mean_leaves_padding_out():
    assert losses.weighted_mean(tensor(1, 3, 99), tensor(1, 1, 0)).numpy() == pytest.approx(2.0)
    assert losses.weighted_mean(tensor(1, 3), tensor(0, 0)).numpy() == 0.0


def test_clipped_surrogate_takes_the_worse_of_both():
    # ratio 1.5 is cut to 1.2 for a good action, but not for a bad one; 0.5 the other way round
    ratio = tensor(1.5, 1.5, 0.5, 0.5, 1.1)
    advantages = tensor(2.0, -2.0, 2.0, -2.0, 3.0)
    got = losses.clipped_surrogate(ratio, advantages, tf.constant(0.2)).numpy()
    assert got == pytest.approx([-2.4, 3.0, -1.0, 1.6, -3.3])


def test_value_loss_with_and_without_a_range():
    values, old, returns = tensor(5.0, 1.5), tensor(1.0, 1.0), tensor(2.0, 2.0)
    assert losses.value_loss(values, old, returns, None).numpy() == pytest.approx([9.0, 0.25])
    got = losses.value_loss(values, old, returns, tf.constant(1.0)).numpy()
    assert got == pytest.approx([0.0, 0.25])  # 5 is cut to 1 + 1


def test_advantages_are_normalized_over_the_rows_that_count():
    got = losses.normalized_advantages(tensor(1, 3, 1000), tensor(1, 1, 0)).numpy()
    assert got[:2] == pytest.approx([-1.0, 1.0])  # mean 2, deviation 1


def test_a_single_advantage_stays_as_it_is():
    got = losses.normalized_advantages(tensor(5, 1000), tensor(1, 0)).numpy()
    assert got[0] == 5.0


def test_equal_advantages_stay_finite():
    got = losses.normalized_advantages(tensor(2, 2, 2), tensor(1, 1, 1)).numpy()
    assert got == pytest.approx([0.0, 0.0, 0.0])


def test_approximate_kl_is_never_negative_and_0_at_equality():
    log_ratio = tf.constant(np.linspace(-3, 3, 101), tf.float32)
    got = losses.approximate_kl(log_ratio).numpy()
    assert (got >= 0).all()
    assert got[50] == 0.0
    assert losses.approximate_kl(tensor(math.log(2.0))).numpy() == pytest.approx(1 - math.log(2))


def test_a_ratio_stays_finite():
    log_ratio = losses.log_ratio(tensor(1e6, -1e6, 0.5), tensor(0.0, 0.0, 0.25))
    assert np.isfinite(tf.exp(log_ratio).numpy()).all()
    assert log_ratio.numpy()[2] == pytest.approx(0.25)


def test_penalty_and_cutoff():
    got = [
        losses.kl_penalty_loss(tf.constant(kl), tf.constant(2.0), cutoff=0.02, cutoff_coef=1000.0)
        for kl in (0.01, 0.05)
    ]
    assert [float(loss) for loss in got] == pytest.approx([0.02, 0.1 + 1000 * 0.03**2])


def test_the_penalty_adapts_within_bounds():
    adapt = losses.adapted_penalty
    assert adapt(1.0, kl=0.02, kl_target=0.01) == 1.5
    assert adapt(1.0, kl=0.005, kl_target=0.01) == pytest.approx(1 / 1.5)
    assert adapt(1.0, kl=0.011, kl_target=0.01) == 1.0
    assert adapt(1e4, kl=1.0, kl_target=0.01) == 1e4
    assert adapt(1e-4, kl=0.0, kl_target=0.01) == 1e-4
