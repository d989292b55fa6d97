"""A policy network that acts in TensorFlow: for networks that NumPy would be slow at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from batchppo.acting_loop import ActingLoop, Call
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
from batchppo.policy import Policy, PolicyNetwork
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
        self._loop = ActingLoop(function, specs, device)

    def __call__(
        self, inputs: Inputs, state: NDArray[np.float32] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        """Returns the parameters, shape [n, parameters], and the next states, if it has any.

        Args:
            inputs: one step's, with `episode_start` if the network remembers.
            state: the states before it, shape [n, state_size]; None for 0.
        """
        return _called(self._call, self.state_size, inputs, state)

    @contextmanager
    def looping(self) -> Iterator[PolicyNetwork]:
        """Gives the same network, computed in one operation until the context ends.

        It is called in the same way, see `ActingLoop`. One context at a time.
        """
        with self._loop.running() as call:
            yield _LoopingNetwork(call, self.state_size)

    def _call(self, read: Inputs) -> list[NDArray[Any]]:
        with tf.device(self._device):
            return [tensor.numpy() for tensor in tf.nest.flatten(self._function(tensors(read)))]


class _LoopingNetwork:
    """What `GraphNetwork.looping` gives."""

    def __init__(self, call: Call, state_size: int) -> None:
        self.state_size = state_size
        self._call = call

    def __call__(
        self, inputs: Inputs, state: NDArray[np.float32] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        return _called(self._call, self.state_size, inputs, state)


def _called(
    call: Call, state_size: int, inputs: Inputs, state: NDArray[np.float32] | None
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
    """Returns the parameters and the next states that `call` gives for inputs and states."""
    read = {name: array for name, array in inputs.items() if name != ACTION_MASK}
    if not state_size:
        (parameters,) = call(read)
        return parameters, None
    read[ACTOR_STATE] = np.zeros((count_rows(inputs), state_size)) if state is None else state
    read[ACTOR_STATE] = read[ACTOR_STATE].astype(np.float32, copy=False)
    parameters, state = call(read)
    return parameters, state


def restored_network(
    policy: Policy, architecture: Architecture, weights: Mapping[str, NDArray[Any]]
) -> GraphNetwork:
    """Returns the acting network of a stored model."""
    network = make_network(policy.encoder, policy.distribution, architecture, seed=0)
    network.set_weights(weights)
    return GraphNetwork(network, policy.encoder, resolve_device("auto", prefer_gpu=True))
