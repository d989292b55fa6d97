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
from batchppo.inputs import (
    ACTION_MASK,
    ACTOR_STATE,
    EPISODE_START,
    VECTOR,
    Inputs,
    count_rows,
)
from batchppo.networks import ActorCritic
from batchppo.observations import ObservationEncoder
from batchppo.policy import Policy
from batchppo.recurrent_networks import RecurrentActorCritic, make_network
from batchppo.update import tensors


class GraphNetwork:
    """Calls a network's policy for any number of rows, compiled once.

    It shares the network's variables: an update shows at once.

    Args:
        network: the network.
        encoder: what the inputs look like.
        device: where to compute.

    Attributes:
        state_size: the length of a state; 0 if the network remembers nothing.
    """

    def __init__(self, network: ActorCritic, encoder: ObservationEncoder, device: str) -> None:
        specs = {
            name: tf.TensorSpec((None, *shape), tf.uint8) for name, shape in encoder.images.items()
        }
        if encoder.size:
            specs[VECTOR] = tf.TensorSpec((None, encoder.size), tf.float32)
        self.state_size = 0
        function = network.parameters
        if isinstance(network, RecurrentActorCritic):
            self.state_size = network.state_size
            specs[EPISODE_START] = tf.TensorSpec((None,), tf.bool)
            specs[ACTOR_STATE] = tf.TensorSpec((None, self.state_size), tf.float32)
            function = network.act
        self._function = compiled(function, input_signature=[specs])
        self._device = device

    def __call__(
        self, inputs: Inputs, state: NDArray[np.float32] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        """Returns the parameters, shape [n, parameters], and the next states, if it has any.

        Args:
            inputs: one step's, with `episode_start` if the network remembers.
            state: the states before it, shape [n, state_size]; None for 0.
        """
        read = {name: array for name, array in inputs.items() if name != ACTION_MASK}
        if self.state_size and state is None:
            state = np.zeros((count_rows(inputs), self.state_size), np.float32)
        if state is not None:
            read[ACTOR_STATE] = state
        with tf.device(self._device):
            result = self._function(tensors(read))
        if not self.state_size:
            return result.numpy(), None
        parameters, state = (tensor.numpy() for tensor in result)
        return parameters, state


def restored_network(
    policy: Policy, architecture: Architecture, weights: Mapping[str, NDArray[Any]]
) -> GraphNetwork:
    """Returns the acting network of a stored model."""
    network = make_network(policy.encoder, policy.distribution, architecture, seed=0)
    network.set_weights(weights)
    return GraphNetwork(network, policy.encoder, resolve_device("auto", prefer_gpu=True))
