"""A policy network that acts in TensorFlow: for networks that NumPy would be slow at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from batchppo.architecture import Architecture
from batchppo.compilation import compiled
from batchppo.device import resolve_device
from batchppo.inputs import ACTION_MASK, VECTOR, Inputs
from batchppo.networks import ActorCritic
from batchppo.observations import ObservationEncoder
from batchppo.policy import Policy


class GraphNetwork:
    """Calls a network's policy for any number of rows, compiled once.

    It shares the network's variables: an update shows at once.

    Args:
        network: the network.
        encoder: what the inputs look like.
        device: where to compute.
    """

    def __init__(self, network: ActorCritic, encoder: ObservationEncoder, device: str) -> None:
        signature = {
            name: tf.TensorSpec((None, *shape), tf.uint8) for name, shape in encoder.images.items()
        }
        if encoder.size:
            signature[VECTOR] = tf.TensorSpec((None, encoder.size), tf.float32)
        self._parameters = compiled(network.parameters, input_signature=[signature])
        self._device = device

    def __call__(self, inputs: Inputs) -> NDArray[Any]:
        """Returns the distributions' parameters, shape [n, parameters]."""
        read = {name: array for name, array in inputs.items() if name != ACTION_MASK}
        with tf.device(self._device):
            parameters: NDArray[np.float32] = self._parameters(
                {name: tf.constant(array) for name, array in read.items()}
            ).numpy()
        return parameters


def restored_network(
    policy: Policy, architecture: Architecture, weights: Mapping[str, NDArray[Any]]
) -> GraphNetwork:
    """Returns the acting network of a stored model."""
    network = ActorCritic(policy.encoder, policy.distribution, architecture, seed=0)
    network.set_weights(weights)
    return GraphNetwork(network, policy.encoder, resolve_device("auto", prefer_gpu=True))
