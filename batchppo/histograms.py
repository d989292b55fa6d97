"""What TensorBoard shows of an update as histograms, one value for each row or weight."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from batchppo.actions import ActionDistribution
from batchppo.compilation import compiled
from batchppo.inputs import VECTOR
from batchppo.minibatches import Minibatches
from batchppo.networks import ActorCritic
from batchppo.update import Batch, Coefficients, Updater, batch_tensors, coefficient_tensors

Histograms = dict[str, Any]

_ROWS = ("policy_loss", "value_loss", "entropy", "approx_kl")
"""Of what an update averages over rows; clip_fraction is 0 or 1, kl is 0 without a penalty."""


class UpdateHistograms:
    """Looks at a rollout, the weights and a gradient behind an update.

    Args:
        network: what is trained.
        updater: how it is trained.
        distribution: what the network's parameters describe.
        device: where to compute.
    """

    def __init__(
        self,
        network: ActorCritic,
        updater: Updater,
        distribution: ActionDistribution,
        device: str,
    ) -> None:
        self._network = network
        self._distribution = distribution
        self._device = device
        self._rows = compiled(updater.rows)
        self._gradients = compiled(updater.gradients)

    def of(self, batch: Batch, minibatches: Minibatches, coefficients: Coefficients) -> Histograms:
        """Returns the values of each histogram by its logger key; `gradients/norm` is a number.

        Args:
            batch: all that the update read; rows that are padding are left out.
            minibatches: whose first one the gradient is taken of, with the weights as they are now.
            coefficients: those of the update.
        """
        return {
            **self._of_rollout(batch),
            **self._of_losses(batch, coefficients),
            **self._of_gradients(batch, minibatches, coefficients),
            **self._of_weights(),
        }

    def _of_rollout(self, batch: Batch) -> Histograms:
        counts = batch.weights.ravel() > 0
        rank = batch.weights.ndim

        def rows(column: NDArray[Any]) -> NDArray[Any]:
            kept: NDArray[Any] = column.reshape(-1, *column.shape[rank:])[counts]
            return kept

        histograms = {
            "action": rows(batch.actions),
            "mode": self._distribution.mode(rows(batch.old_parameters)),
            "log_prob": rows(batch.old_log_prob),
            "value": rows(batch.old_values),
            "advantage": rows(batch.advantages),
            "return": rows(batch.returns),
        }
        if VECTOR in batch.inputs:
            histograms["observation"] = rows(batch.inputs[VECTOR])
        return {f"rollout/{name}": values for name, values in histograms.items()}

    def _of_losses(self, batch: Batch, coefficients: Coefficients) -> Histograms:
        everything = tf.ones(len(batch.weights))
        with tf.device(self._device):
            rows, weights = self._rows(
                batch_tensors(batch), everything, coefficient_tensors(coefficients)
            )
        counts = weights.numpy() > 0
        return {f"losses/{name}": rows[name].numpy()[counts] for name in _ROWS}

    def _of_gradients(
        self, batch: Batch, minibatches: Minibatches, coefficients: Coefficients
    ) -> Histograms:
        units, weights = minibatches.rows[0], minibatches.weights[0]
        with tf.device(self._device):
            first = tf.nest.map_structure(lambda column: tf.constant(column[units]), batch)
            gradients, _ = self._gradients(
                first, tf.constant(weights), coefficient_tensors(coefficients)
            )
        arrays = [gradient.numpy() for gradient in gradients]
        figures = _by_part("gradients", dict(zip(self._network.variables, arrays, strict=True)))
        return {**figures, "gradients/norm": np.linalg.norm(figures["gradients/all"])}

    def _of_weights(self) -> Histograms:
        return _by_part("weights", self._network.weights())


def _by_part(group: str, arrays: Histograms) -> Histograms:
    """Returns arrays of weights joined: all of them, the policy's and the value's."""
    parts = {
        "all": list(arrays),
        "policy": [name for name in arrays if not name.startswith("critic")],
        "value": [name for name in arrays if name.startswith("critic")],
    }
    return {
        f"{group}/{part}": np.concatenate([arrays[name].ravel() for name in names])
        for part, names in parts.items()
    }
