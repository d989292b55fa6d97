"""What policy and value read of an observation, unless a user's own layer says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from batchppo.inputs import VECTOR
from batchppo.layers import LayerMaker, apply_layers, build_layers
from batchppo.observations import ObservationEncoder


class PlainFeatures:
    """The vector as it is and, side by side, what convolutions make of each image.

    Args:
        prefix: what the names of the convolutions' weights begin with.
        encoder: what the inputs look like.
        make: makes the convolutions.

    Attributes:
        variables: what is trained, by name.
        frozen: what is not; nothing.
    """

    def __init__(self, prefix: str, encoder: ObservationEncoder, make: LayerMaker) -> None:
        self.variables: dict[str, keras.Variable] = {}
        self.frozen: dict[str, keras.Variable] = {}
        self._stacks: dict[str, list[Any]] = {}
        for name, shape in encoder.images.items():
            self._stacks[name] = make.nature_cnn()
            self.variables.update(build_layers(f"{prefix}/{name}", self._stacks[name], shape))

    def __call__(self, inputs: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Returns the features, shape [B, features], of B rows of inputs."""
        parts = [inputs[VECTOR]] if VECTOR in inputs else []
        parts += [apply_layers(stack, pixels(inputs[name])) for name, stack in self._stacks.items()]
        return parts[0] if len(parts) == 1 else tf.concat(parts, axis=-1)


def pixels(image: tf.Tensor) -> tf.Tensor:
    """Returns bytes as floats from 0 to 1."""
    return tf.cast(image, tf.float32) * (1.0 / 255.0)
