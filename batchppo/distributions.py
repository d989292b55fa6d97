"""Distributions over actions, learning side, in TensorFlow.

`actions.py` has the acting side. Both describe a distribution by the same row of parameters.
All functions here are pure and work on rows.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import tensorflow as tf

from batchppo.actions import LOG_STD_BOUNDS, ActionDistribution, Categorical, DiagonalGaussian

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
    """Independent normal distributions; parameters are means, then log-deviations."""

    def log_prob(self, parameters: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        """Returns sum_i [-(a_i - mu_i)^2 / (2 sigma_i^2) - log sigma_i - log(2 pi) / 2]."""
        mean, log_std = _mean_and_log_std(parameters)
        standardized = (actions - mean) * tf.exp(-log_std)
        return tf.reduce_sum(-0.5 * (tf.square(standardized) + _LOG_2PI) - log_std, axis=-1)

    def entropy(self, parameters: tf.Tensor) -> tf.Tensor:
        """Returns sum_i [log sigma_i + (1 + log(2 pi)) / 2]."""
        _, log_std = _mean_and_log_std(parameters)
        return tf.reduce_sum(log_std + 0.5 * (1.0 + _LOG_2PI), axis=-1)

    def kl_divergence(self, old: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
        """Returns sum_i [log(s'/s) + (s^2 + (m - m')^2) / (2 s'^2) - 1/2], new m', s' primed."""
        old_mean, old_log_std = _mean_and_log_std(old)
        new_mean, new_log_std = _mean_and_log_std(new)
        ratio = tf.exp(2.0 * (old_log_std - new_log_std))
        distance = tf.square((old_mean - new_mean) * tf.exp(-new_log_std))
        return tf.reduce_sum(new_log_std - old_log_std + 0.5 * (ratio + distance - 1.0), axis=-1)

    def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        """Returns mean + exp(log_std) * noise."""
        mean, log_std = _mean_and_log_std(parameters)
        return mean + tf.exp(log_std) * noise


class TensorCategorical:
    """One choice of n; parameters are the logits."""

    def log_prob(self, parameters: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        """Returns the logarithm of softmax(logits) at the chosen index."""
        # A product with one-hot rows: its gradient is cheaper to compile than a gather's.
        chosen = tf.one_hot(actions, parameters.shape[-1], dtype=parameters.dtype)
        return tf.reduce_sum(tf.nn.log_softmax(parameters) * chosen, axis=-1)

    def entropy(self, parameters: tf.Tensor) -> tf.Tensor:
        """Returns -sum_i p_i log p_i."""
        log_probs = tf.nn.log_softmax(parameters)
        return -tf.reduce_sum(tf.exp(log_probs) * log_probs, axis=-1)

    def kl_divergence(self, old: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
        """Returns sum_i p_i (log p_i - log q_i) for old p and new q."""
        old_log_probs = tf.nn.log_softmax(old)
        difference = old_log_probs - tf.nn.log_softmax(new)
        return tf.reduce_sum(tf.exp(old_log_probs) * difference, axis=-1)

    def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        """Returns argmax(logits + noise)."""
        return tf.argmax(parameters + noise, axis=-1, output_type=tf.int32)


def tensor_distribution(distribution: ActionDistribution) -> TensorDistribution:
    """Returns the learning side of an acting side's distribution."""
    sides: dict[type[Any], type[Any]] = {
        DiagonalGaussian: TensorGaussian,
        Categorical: TensorCategorical,
    }
    side: TensorDistribution = sides[type(distribution)]()
    return side


def _mean_and_log_std(parameters: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    mean, log_std = tf.split(parameters, 2, axis=-1)
    return mean, tf.clip_by_value(log_std, *LOG_STD_BOUNDS)
