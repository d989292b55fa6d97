"""Distributions over actions, learning side, in TensorFlow.

`actions.py` has the acting side. Both describe a distribution by the same row of parameters.
All functions here are pure and work on rows.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from batchppo.actions import (
    LOG_STD_BOUNDS,
    ActionDistribution,
    Bernoulli,
    Choices,
    DiagonalGaussian,
    SquashedGaussian,
)

_LOG_2PI = math.log(2.0 * math.pi)


class TensorDistribution(Protocol):
    """A family of distributions whose gradients can be taken; B rows of P parameters each."""

    def log_prob(self, parameters: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        """Returns log pi(a), shape [B], for stored actions of shape [B, ...]."""

    def entropy(self, parameters: tf.Tensor) -> tf.Tensor:
        """Returns -E[log pi(a)], shape [B]."""

    def kl_divergence(self, old: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
        """Returns KL(old || new), shape [B]."""

    def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        """Returns the actions that `actions.py` draws from the same parameters and noise."""


class TensorGaussian:
    """Independent normal distributions; parameters are means, then log-deviations.

    Parameters of state-dependent noise have more behind them, which only acting reads.

    Args:
        size: how many actions there are.
    """

    def __init__(self, size: int) -> None:
        self._size = size

    def log_prob(self, parameters: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        """Returns sum_i [-(a_i - mu_i)^2 / (2 sigma_i^2) - log sigma_i - log(2 pi) / 2]."""
        mean, log_std = self._mean_and_log_std(parameters)
        standardized = (actions - mean) * tf.exp(-log_std)
        return tf.reduce_sum(-0.5 * (tf.square(standardized) + _LOG_2PI) - log_std, axis=-1)

    def entropy(self, parameters: tf.Tensor) -> tf.Tensor:
        """Returns sum_i [log sigma_i + (1 + log(2 pi)) / 2]."""
        _, log_std = self._mean_and_log_std(parameters)
        return tf.reduce_sum(log_std + 0.5 * (1.0 + _LOG_2PI), axis=-1)

    def kl_divergence(self, old: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
        """Returns sum_i [log(s'/s) + (s^2 + (m - m')^2) / (2 s'^2) - 1/2], new m', s' primed."""
        old_mean, old_log_std = self._mean_and_log_std(old)
        new_mean, new_log_std = self._mean_and_log_std(new)
        ratio = tf.exp(2.0 * (old_log_std - new_log_std))
        distance = tf.square((old_mean - new_mean) * tf.exp(-new_log_std))
        return tf.reduce_sum(new_log_std - old_log_std + 0.5 * (ratio + distance - 1.0), axis=-1)

    def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        """Returns mean + exp(log_std) * noise."""
        mean, log_std = self._mean_and_log_std(parameters)
        return mean + tf.exp(log_std) * noise

    def _mean_and_log_std(self, parameters: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        mean = parameters[..., : self._size]
        log_std = parameters[..., self._size : 2 * self._size]
        return mean, tf.clip_by_value(log_std, *LOG_STD_BOUNDS)


class TensorSquashed(TensorGaussian):
    """tanh of independent normal distributions, scaled; stored actions are from before the tanh.

    Args:
        scale: half the width of the action's range, shape [actions].
    """

    def __init__(self, scale: NDArray[np.float32]) -> None:
        super().__init__(len(scale))
        self._log_scale = float(np.sum(np.log(scale)))

    def log_prob(self, parameters: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        """Returns log N(u) - sum_i log(scale_i (1 - tanh(u_i)^2)): Haarnoja 2018, appendix C."""
        correction = tf.reduce_sum(_log_tanh_slope(actions), axis=-1) + self._log_scale
        return super().log_prob(parameters, actions) - correction

    def entropy(self, parameters: tf.Tensor) -> tf.Tensor:
        """Returns H[u] + sum_i E[log(scale_i (1 - tanh(u_i)^2))].

        The expectation, which has no closed form, is a Gauss-Hermite quadrature per dimension: it
        has a gradient and no noise.
        """
        mean, log_std = self._mean_and_log_std(parameters)
        nodes, weights = np.polynomial.hermite_e.hermegauss(16)
        weights = tf.constant(weights / weights.sum(), tf.float32)
        points = mean[..., None] + tf.exp(log_std)[..., None] * tf.constant(nodes, tf.float32)
        expected = tf.reduce_sum(_log_tanh_slope(points) * weights, axis=(-2, -1))
        return super().entropy(parameters) + expected + self._log_scale


class TensorChoices:
    """Independent choices; parameters are their logits side by side.

    Args:
        counts: how many options each choice has.
        action_shape: the shape of one stored action.
    """

    def __init__(self, counts: tuple[int, ...], action_shape: tuple[int, ...]) -> None:
        self._counts = counts
        self._action_shape = action_shape

    def log_prob(self, parameters: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        """Returns the sum of the logarithms of softmax(logits) at the chosen indices."""
        actions = tf.reshape(actions, [-1, len(self._counts)])
        total = 0.0
        for i, log_probs in enumerate(self._log_probs(parameters)):
            # A product with one-hot rows: its gradient is cheaper to compile than a gather's.
            chosen = tf.one_hot(actions[:, i], self._counts[i], dtype=parameters.dtype)
            total += tf.reduce_sum(log_probs * chosen, axis=-1)
        return total

    def entropy(self, parameters: tf.Tensor) -> tf.Tensor:
        """Returns -sum_i p_i log p_i, summed over the choices."""
        return -sum(
            tf.reduce_sum(tf.exp(log_probs) * log_probs, axis=-1)
            for log_probs in self._log_probs(parameters)
        )

    def kl_divergence(self, old: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
        """Returns sum_i p_i (log p_i - log q_i) for old p and new q, summed over the choices."""
        return sum(
            tf.reduce_sum(tf.exp(log_p) * (log_p - log_q), axis=-1)
            for log_p, log_q in zip(self._log_probs(old), self._log_probs(new), strict=True)
        )

    def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        """Returns argmax(logits + noise) of each choice."""
        parts = tf.split(parameters + noise, self._counts, axis=-1)
        chosen = tf.stack([tf.argmax(part, -1, tf.int32) for part in parts], axis=-1)
        return tf.reshape(chosen, [-1, *self._action_shape])

    def _log_probs(self, parameters: tf.Tensor) -> list[tf.Tensor]:
        parts = tf.split(parameters, self._counts, axis=-1)
        return [tf.nn.log_softmax(part) for part in parts]


class TensorBernoulli:
    """Independent yes or no; parameters are the logits of yes."""

    def log_prob(self, parameters: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        """Returns sum_i [a_i l_i - log(1 + exp(l_i))]."""
        answers = tf.cast(actions, parameters.dtype)
        return tf.reduce_sum(answers * parameters - tf.nn.softplus(parameters), axis=-1)

    def entropy(self, parameters: tf.Tensor) -> tf.Tensor:
        """Returns sum_i [log(1 + exp(l_i)) - l_i sigmoid(l_i)]."""
        yes = tf.sigmoid(parameters)
        return tf.reduce_sum(tf.nn.softplus(parameters) - parameters * yes, axis=-1)

    def kl_divergence(self, old: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
        """Returns sum_i [p_i (l_i - m_i) - softplus(l_i) + softplus(m_i)], old l and new m."""
        difference = tf.sigmoid(old) * (old - new) - tf.nn.softplus(old) + tf.nn.softplus(new)
        return tf.reduce_sum(difference, axis=-1)

    def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        """Returns logits + noise > 0."""
        return tf.cast(parameters + noise > 0, tf.int32)


def tensor_distribution(distribution: ActionDistribution) -> TensorDistribution:
    """Returns the learning side of an acting side's distribution."""
    if isinstance(distribution, SquashedGaussian):
        return TensorSquashed(distribution.scale)
    if isinstance(distribution, DiagonalGaussian):
        return TensorGaussian(distribution.free_size)
    if isinstance(distribution, Choices):
        return TensorChoices(distribution.counts, distribution.action_shape)
    if isinstance(distribution, Bernoulli):
        return TensorBernoulli()
    raise TypeError(f"no learning side for {type(distribution).__name__}")


def _log_tanh_slope(u: tf.Tensor) -> tf.Tensor:
    """Returns log(1 - tanh(u)^2) = 2 (log 2 - u - softplus(-2 u)), without cancellation."""
    return 2.0 * (math.log(2.0) - u - tf.nn.softplus(-2.0 * u))
