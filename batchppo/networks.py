"""The networks that learn, in Keras."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from batchppo.actions import LOG_STD_BOUNDS, MIN_RAW_STD, ActionDistribution
from batchppo.architecture import Architecture
from batchppo.inputs import ACTION_MASK, VECTOR
from batchppo.masks import FORBIDDEN
from batchppo.observations import ObservationEncoder
from batchppo.weight_shapes import CONVOLUTIONS, weight_shapes

TensorInputs = Mapping[str, tf.Tensor]


class ActorCritic:
    """From normalized inputs to the distributions' parameters and to values.

    Policy and value have dense networks of their own. Images go through convolutions first, which
    both share unless the architecture says otherwise.

    Args:
        encoder: what the inputs look like.
        distribution: what the parameters describe.
        architecture: layers and initial weights.
        seed: of the initial weights.

    Attributes:
        variables: everything that is trained, by the name under which it is stored.
        has_images: whether there are convolutions.
    """

    def __init__(
        self,
        encoder: ObservationEncoder,
        distribution: ActionDistribution,
        architecture: Architecture,
        seed: int,
    ) -> None:
        make = LayerMaker(architecture, np.random.SeedSequence(seed).generate_state(64).tolist())
        outputs = distribution.parameter_size - distribution.free_size
        self._actor = make.actor(outputs)
        self._critic = make.critic()
        self.variables: dict[str, keras.Variable] = {}
        self.has_images = bool(encoder.images)
        size = architecture.features_size(encoder)
        for part, layers in (("actor", self._actor), ("critic", self._critic)):
            inputs = architecture.recurrent_size if architecture.has_cell(part) else size
            self.variables.update(build_layers(part, layers, (inputs,)))
        self._actor_images = self._images("images", encoder, make)
        self._critic_images = self._actor_images
        if self.has_images and not architecture.share_features_extractor:
            self._critic_images = self._images("critic_images", encoder, make)
        self._std: keras.Variable | None = None
        self._is_softplus = architecture.std_activation == "softplus"
        if distribution.free_size:
            name = architecture.std_name
            shape = weight_shapes(encoder, distribution, architecture)[name]
            initial = keras.initializers.Constant(_initial_std(architecture))
            self._std = keras.Variable(initial, shape=shape, name=name)
            self.variables[name] = self._std

    @property
    def trainable_variables(self) -> list[keras.Variable]:
        """The variables in the order in which the optimizer keeps its moments."""
        return list(self.variables.values())

    def forward(self, inputs: TensorInputs) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the parameters, shape [B, P], and V(s), shape [B], of B rows of inputs."""
        actor_features, critic_features = self.features(inputs)
        return self.head(actor_features, inputs), self.value_head(critic_features)

    def parameters(self, inputs: TensorInputs) -> tf.Tensor:
        """Returns the distributions' parameters, shape [B, P], of B rows of inputs."""
        return self.head(_features(self._actor_images, inputs), inputs)

    def values(self, inputs: TensorInputs) -> tf.Tensor:
        """Returns V(s), shape [B], of B rows of inputs."""
        return self.value_head(_features(self._critic_images, inputs))

    def features(self, inputs: TensorInputs) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns what policy and value read of B rows of inputs, shapes [B, features]."""
        features = _features(self._actor_images, inputs)
        if self._critic_images is self._actor_images:
            return features, features
        return features, _features(self._critic_images, inputs)

    def head(self, features: tf.Tensor, inputs: TensorInputs) -> tf.Tensor:
        """Returns the parameters, shape [B, P], that the policy's dense layers make of features."""
        latent = apply_layers(self._actor[:-1], features)
        outputs = self._actor[-1](latent)
        log_std = self.log_std()
        if log_std is not None:
            return tf.concat([outputs, *_spread(latent, outputs, log_std)], axis=-1)
        mask = inputs.get(ACTION_MASK)
        return outputs if mask is None else tf.where(mask, outputs, FORBIDDEN)

    def log_std(self) -> tf.Tensor | None:
        """Returns a Gaussian's log-deviations, shape [actions] or [features, actions]."""
        if self._std is None:
            return None
        std = tf.convert_to_tensor(self._std)
        if not self._is_softplus:
            return std
        return tf.math.log(tf.nn.softplus(tf.maximum(std, MIN_RAW_STD)))

    def value_head(self, features: tf.Tensor) -> tf.Tensor:
        """Returns the values, shape [B], that the value's dense layers make of features."""
        return apply_layers(self._critic, features)[:, 0]

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Returns copies of all variables by name."""
        return {name: np.array(variable.numpy()) for name, variable in self.variables.items()}

    def set_weights(self, weights: Mapping[str, NDArray[Any]]) -> None:
        """Assigns all variables by name; the names and shapes have to be these."""
        for name, variable in self.variables.items():
            variable.assign(weights[name])

    def _images(
        self, prefix: str, encoder: ObservationEncoder, make: LayerMaker
    ) -> dict[str, list[Any]]:
        stacks = {}
        for name, shape in encoder.images.items():
            stacks[name] = make.nature_cnn()
            self.variables.update(build_layers(f"{prefix}/{name}", stacks[name], shape))
        return stacks


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
            keras.layers.Conv2D(
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


def _initial_std(architecture: Architecture) -> float:
    """Returns the number from which the initial deviation, exp(log_std_init), is made."""
    if architecture.std_activation == "exp":
        return architecture.log_std_init
    return math.log(math.expm1(math.exp(architecture.log_std_init)))


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


def _spread(latent: tf.Tensor, outputs: tf.Tensor, log_std: tf.Tensor) -> list[tf.Tensor]:
    """Returns the log-deviations, [B, actions], and behind them what draws their noise."""
    if log_std.shape.rank == 1:
        return [tf.broadcast_to(log_std, tf.shape(outputs))]
    # The noise must not shape the features: only the deviations learn from it.
    latent = tf.stop_gradient(latent)
    deviation = tf.exp(tf.clip_by_value(log_std, *LOG_STD_BOUNDS))
    variance = tf.square(latent) @ tf.square(deviation)
    scaled = latent[:, :, None] * deviation
    size = latent.shape[-1] * outputs.shape[-1]
    return [0.5 * tf.math.log(variance + 1e-6), tf.reshape(scaled, (-1, size))]


def _features(images: Mapping[str, list[Any]], inputs: TensorInputs) -> tf.Tensor:
    """Returns the vector and the features of all images side by side, shape [B, features]."""
    parts = [inputs[VECTOR]] if VECTOR in inputs else []
    for name, layers in images.items():
        pixels = tf.cast(inputs[name], tf.float32) * (1.0 / 255.0)
        parts.append(apply_layers(layers, pixels))
    return parts[0] if len(parts) == 1 else tf.concat(parts, axis=-1)
