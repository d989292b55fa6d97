"""The networks that learn, in Keras."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from batchppo.actions import LOG_STD_BOUNDS, MIN_RAW_STD, ActionDistribution
from batchppo.architecture import Architecture
from batchppo.inputs import ACTION_MASK
from batchppo.layers import LayerMaker, apply_layers, build_layers
from batchppo.masks import FORBIDDEN
from batchppo.observations import ObservationEncoder
from batchppo.plain_features import PlainFeatures
from batchppo.user_extractor import UserFeatures
from batchppo.weight_shapes import weight_shapes

TensorInputs = Mapping[str, tf.Tensor]
Features: TypeAlias = PlainFeatures | UserFeatures


class ActorCritic:
    """From normalized inputs to the distributions' parameters and to values.

    Policy and value have dense networks of their own. Images go through convolutions first, or all
    inputs through a user's own layer, which both share unless the architecture says otherwise.

    Args:
        encoder: what the inputs look like.
        distribution: what the parameters describe.
        architecture: layers and initial weights.
        seed: of the initial weights.

    Attributes:
        variables: everything that is trained, by the name under which it is stored.
        frozen: what is stored, but not trained: weights of a user's layer.
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
        self.frozen: dict[str, keras.Variable] = {}
        size = architecture.features_size(encoder)
        for part, layers in (("actor", self._actor), ("critic", self._critic)):
            inputs = architecture.recurrent_size if architecture.has_cell(part) else size
            self.variables.update(build_layers(part, layers, (inputs,)))
        self._actor_features = self._make_features("", encoder, architecture, make, seed)
        self._critic_features = self._actor_features
        if not architecture.share_features_extractor:
            self._critic_features = self._make_features(
                "critic_", encoder, architecture, make, seed
            )
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
        return self.head(self._actor_features(inputs), inputs)

    def values(self, inputs: TensorInputs) -> tf.Tensor:
        """Returns V(s), shape [B], of B rows of inputs."""
        return self.value_head(self._critic_features(inputs))

    def features(self, inputs: TensorInputs) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns what policy and value read of B rows of inputs, shapes [B, features]."""
        features = self._actor_features(inputs)
        if self._critic_features is self._actor_features:
            return features, features
        return features, self._critic_features(inputs)

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
        """Returns copies of all variables by name, those that are not trained last."""
        return {name: np.array(variable.numpy()) for name, variable in self._all().items()}

    def set_weights(self, weights: Mapping[str, NDArray[Any]]) -> None:
        """Assigns all variables by name; the names and shapes have to be these."""
        for name, variable in self._all().items():
            variable.assign(weights[name])

    def start_from(self, layer: keras.Layer) -> None:
        """Takes over the weights of the layer that is the architecture's features extractor.

        Raises:
            ValueError: see `UserFeatures.start_from`.
        """
        for features in (self._actor_features, self._critic_features):
            if isinstance(features, UserFeatures):
                features.start_from(layer)

    def _all(self) -> dict[str, keras.Variable]:
        return {**self.variables, **self.frozen}

    def _make_features(
        self,
        prefix: str,
        encoder: ObservationEncoder,
        architecture: Architecture,
        make: LayerMaker,
        seed: int,
    ) -> Features:
        features: Features
        if architecture.extractor is None:
            features = PlainFeatures(f"{prefix}images", encoder, make)
        else:
            own_seed = int(np.random.SeedSequence([seed, 3, len(prefix)]).generate_state(1)[0])
            features = UserFeatures(f"{prefix}extractor", architecture.extractor, encoder, own_seed)
        self.variables.update(features.variables)
        self.frozen.update(features.frozen)
        return features


def _initial_std(architecture: Architecture) -> float:
    """Returns the number from which the initial deviation, exp(log_std_init), is made."""
    if architecture.std_activation == "exp":
        return architecture.log_std_init
    return math.log(math.expm1(math.exp(architecture.log_std_init)))


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
