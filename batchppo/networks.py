"""The networks that learn, in Keras."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from batchppo.actions import ActionDistribution
from batchppo.architecture import Architecture


class ActorCritic:
    """Two separate dense networks: from normalized observations to parameters and to values.

    Args:
        input_size: how many numbers an observation row has.
        distribution: what the parameters describe.
        architecture: layers and initial weights.
        seed: of the initial weights.

    Attributes:
        variables: everything that is trained, by the name under which it is stored.
    """

    def __init__(
        self,
        input_size: int,
        distribution: ActionDistribution,
        architecture: Architecture,
        seed: int,
    ) -> None:
        outputs = distribution.parameter_size - distribution.free_size
        seeds = iter(np.random.SeedSequence(seed).generate_state(64).tolist())

        def layers(widths: tuple[int, ...], outputs: int, gain: float) -> list[Any]:
            hidden = [
                _dense(width, architecture.activation, architecture.ortho_init, math.sqrt(2), seeds)
                for width in widths
            ]
            return [*hidden, _dense(outputs, "linear", architecture.ortho_init, gain, seeds)]

        self._actor = layers(architecture.pi, outputs, 0.01)
        self._critic = layers(architecture.vf, 1, 1.0)
        self.variables: dict[str, keras.Variable] = {}
        for name, stack in (("actor", self._actor), ("critic", self._critic)):
            self.variables.update(_build(name, stack, input_size))
        self._log_std: keras.Variable | None = None
        if distribution.free_size:
            initial = keras.initializers.Constant(architecture.log_std_init)
            self._log_std = keras.Variable(initial, shape=(distribution.free_size,), name="log_std")
            self.variables["log_std"] = self._log_std

    @property
    def trainable_variables(self) -> list[keras.Variable]:
        """The variables in the order in which the optimizer keeps its moments."""
        return list(self.variables.values())

    def parameters(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the distributions' parameters, shape [B, P], for inputs of shape [B, size]."""
        outputs = _apply(self._actor, inputs)
        if self._log_std is None:
            return outputs
        log_std = tf.broadcast_to(tf.convert_to_tensor(self._log_std), tf.shape(outputs))
        return tf.concat([outputs, log_std], axis=-1)

    def values(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns V(s), shape [B], for inputs of shape [B, size]."""
        return _apply(self._critic, inputs)[:, 0]

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Returns copies of all variables by name."""
        return {name: np.array(variable.numpy()) for name, variable in self.variables.items()}

    def set_weights(self, weights: Mapping[str, NDArray[Any]]) -> None:
        """Assigns all variables by name; the names and shapes have to be these."""
        for name, variable in self.variables.items():
            variable.assign(weights[name])


def _dense(width: int, activation: str, orthogonal: bool, gain: float, seeds: Any) -> Any:
    seed = next(seeds)
    initializer = (
        keras.initializers.Orthogonal(gain, seed=seed)
        if orthogonal
        else keras.initializers.GlorotUniform(seed=seed)
    )
    return keras.layers.Dense(width, activation=activation, kernel_initializer=initializer)


def _build(name: str, layers: list[Any], input_size: int) -> dict[str, keras.Variable]:
    variables = {}
    for i, layer in enumerate(layers):
        layer.build((None, input_size))
        variables[f"{name}/{i}/kernel"] = layer.kernel
        variables[f"{name}/{i}/bias"] = layer.bias
        input_size = layer.units
    return variables


def _apply(layers: list[Any], inputs: tf.Tensor) -> tf.Tensor:
    for layer in layers:
        inputs = layer(inputs)
    return inputs
