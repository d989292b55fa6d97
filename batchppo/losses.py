"""The terms of PPO's objective, as pure functions of rows.

Schulman et al. 2017 (arXiv:1707.06347). A row's weight is 1 where it counts and 0 where it is
padding; every mean is a weighted one, so padding changes no number.
"""

from __future__ import annotations

import tensorflow as tf

_MAX_LOG_RATIO = 20.0  # exp(20) is already 4.9e8; without a bound one row could give infinity


def weighted_mean(values: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Returns sum(w x) / sum(w) over rows, shape []; 0 where no row counts."""
    return tf.math.divide_no_nan(tf.reduce_sum(values * weights), tf.reduce_sum(weights))


def normalized_advantages(advantages: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Returns (A - mean) / (std + 1e-8) over the rows that count, shape [B].

    The deviation is the population's, which one row has too; a single row stays as it is, since
    its difference from its own mean would be 0 and teach nothing.
    """
    mean = weighted_mean(advantages, weights)
    std = tf.sqrt(weighted_mean(tf.square(advantages - mean), weights))
    normalized = (advantages - mean) / (std + 1e-8)
    return tf.where(tf.reduce_sum(weights) > 1.0, normalized, advantages)


def log_ratio(log_prob: tf.Tensor, old_log_prob: tf.Tensor) -> tf.Tensor:
    """Returns log(pi(a|s) / pi_old(a|s)), shape [B], bounded so that its exponential is finite."""
    return tf.clip_by_value(log_prob - old_log_prob, -_MAX_LOG_RATIO, _MAX_LOG_RATIO)


def clipped_surrogate(ratio: tf.Tensor, advantages: tf.Tensor, clip_range: tf.Tensor) -> tf.Tensor:
    """Returns -min(r A, clip(r, 1 - eps, 1 + eps) A), shape [B]: equation 7 as a loss.

    Args:
        ratio: r = pi(a|s) / pi_old(a|s), shape [B].
        advantages: A, shape [B].
        clip_range: eps, shape [].
    """
    clipped = tf.clip_by_value(ratio, 1.0 - clip_range, 1.0 + clip_range)
    return -tf.minimum(ratio * advantages, clipped * advantages)


def kl_penalty_loss(
    kl: tf.Tensor, penalty: tf.Tensor, cutoff: float, cutoff_coef: float
) -> tf.Tensor:
    """Returns beta KL + c max(0, KL - cutoff)^2, shape []: equation 8's penalty with a cutoff.

    The quadratic term, which the first batch-ppo added, keeps a single update from going far
    before beta has adapted.

    Args:
        kl: the mean divergence of the old distributions from the new ones, shape [].
        penalty: beta, shape [].
        cutoff: the divergence from which on the quadratic term acts.
        cutoff_coef: c.
    """
    return penalty * kl + cutoff_coef * tf.square(tf.maximum(kl - cutoff, 0.0))


def adapted_penalty(penalty: float, kl: float, kl_target: float) -> float:
    """Returns beta for the next update: more where the policy moved too far, less where not enough.

    As the first batch-ppo: a factor of 1.5 outside of [0.7, 1.3] times the target; the result
    stays within [1e-4, 1e4].
    """
    if kl > 1.3 * kl_target:
        penalty *= 1.5
    elif kl < 0.7 * kl_target:
        penalty /= 1.5
    return min(max(penalty, 1e-4), 1e4)


def value_loss(
    values: tf.Tensor,
    old_values: tf.Tensor,
    returns: tf.Tensor,
    clip_range_vf: tf.Tensor | None,
) -> tf.Tensor:
    """Returns (R - V)^2, shape [B], with V kept within `clip_range_vf` of the old value.

    As in Stable-Baselines3: the clipped value takes the value's place, so that rows outside of
    the range have no gradient.

    Args:
        values: V(s) now, shape [B].
        old_values: V(s) before the update, shape [B].
        returns: R = A + V_old(s), shape [B].
        clip_range_vf: the range, shape []; None for no bound.
    """
    if clip_range_vf is not None:
        values = old_values + tf.clip_by_value(values - old_values, -clip_range_vf, clip_range_vf)
    return tf.square(returns - values)


def approximate_kl(log_ratio: tf.Tensor) -> tf.Tensor:
    """Returns (r - 1) - log r, shape [B]: an estimate of KL(old || new) that is never negative.

    Schulman 2020, "Approximating KL Divergence", estimator k3.
    """
    return tf.exp(log_ratio) - 1.0 - log_ratio
