"""Dense layers and convolutions, in Keras."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf

from batchppo.architecture import Architecture
from batchppo.convolution import Convolution
from batchppo.weight_shapes import CONVOLUTIONS


class LayerMaker:
    """Makes layers with the architecture's activation and initial weights."""

    def __init__(self, architecture: Architecture, seeds: list[int]) -> None:
        self._architecture = architecture
        self._seeds: Iterator[int] = iter(seeds)

    def actor(self, outputs: int) -> list[Any]:
        """Returns the policy's hidden layers and its output layer."""
        architecture = self._architecture
        layers = self.hidden(architecture.pi)
        scale = architecture.output_init_scale
        initializer = (
            self._initializer(0.01)
            if scale is None
            else keras.initializers.VarianceScaling(scale, seed=next(self._seeds))
        )
        output = keras.layers.Dense(
            outputs, activation=architecture.mean_activation, kernel_initializer=initializer
        )
        return [*layers, output]

    def critic(self) -> list[Any]:
        """Returns the value's hidden layers and its linear output layer."""
        return [*self.hidden(self._architecture.vf), self._dense(1, "linear", 1.0)]

    def hidden(self, widths: tuple[int, ...]) -> list[Any]:
        """Returns hidden layers."""
        activation = self._architecture.activation
        return [self._dense(width, activation, math.sqrt(2.0)) for width in widths]

    def nature_cnn(self) -> list[Any]:
        """Returns three convolutions and a dense layer, see `CONVOLUTIONS`."""
        convolutions = [
            Convolution(
                filters,
                kernel,
                strides,
                activation="relu",
                kernel_initializer=self._initializer(math.sqrt(2.0)),
            )
            for filters, kernel, strides in CONVOLUTIONS
        ]
        features = self._dense(self._architecture.features_dim, "relu", math.sqrt(2.0))
        return [*convolutions, keras.layers.Flatten(), features]

    def _dense(self, width: int, activation: str, gain: float) -> Any:
        initializer = self._initializer(gain)
        return keras.layers.Dense(width, activation=activation, kernel_initializer=initializer)

    def _initializer(self, gain: float) -> Any:
        seed = next(self._seeds)
        if self._architecture.ortho_init:
            return keras.initializers.Orthogonal(gain, seed=seed)
        return keras.initializers.GlorotUniform(seed=seed)


def build_layers(
    prefix: str, layers: list[Any], shape: tuple[int, ...]
) -> dict[str, keras.Variable]:
    """Builds the layers one after the other and returns their variables by name."""
    variables = {}
    batch_shape: tuple[int | None, ...] = (None, *shape)
    for i, layer in enumerate(layers):
        layer.build(batch_shape)
        batch_shape = layer.compute_output_shape(batch_shape)
        for variable in layer.trainable_variables:
            variables[f"{prefix}/{i}/{variable.name}"] = variable
    return variables


def apply_layers(layers: list[Any], inputs: tf.Tensor) -> tf.Tensor:
    """Returns what the layers, one after the other, make of `inputs`."""
    for layer in layers:
        inputs = layer(inputs)
    return inputs
