"""Encoded inputs in the shapes of the observations that they were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from gymnasium import spaces

from batchppo.errors import SpaceError
from batchppo.inputs import VECTOR
from batchppo.observations import ObservationEncoder
from batchppo.plain_features import pixels


class ObservedInputs:
    """Gives a user's layer observations in their own shapes: a tensor, or a dict for a Dict space.

    Args:
        encoder: what the inputs look like.

    Raises:
        SpaceError: two entries of nested Dicts would have one name.
    """

    def __init__(self, encoder: ObservationEncoder) -> None:
        self._images = encoder.images
        self._vectors = encoder.vectors
        self._shapes = {**self._vectors, **self._images}
        self._is_dict = isinstance(encoder.space, spaces.Dict)
        self._sizes = [int(np.prod(shape)) for shape in self._vectors.values()]
        if sum(self._sizes) != encoder.size or self._images.keys() & self._vectors.keys():
            raise SpaceError(f"{encoder.space}: two entries have the same name, joined with dots")

    @property
    def shapes(self) -> Any:
        """What one row looks like: a shape, or shapes by name."""
        return self._joined(self._shapes)

    def of(self, inputs: Mapping[str, tf.Tensor]) -> Any:
        """Returns B rows of inputs as float32 of shape [B, ...], images from 0 to 1."""
        parts = {}
        if self._vectors:
            columns = tf.split(inputs[VECTOR], self._sizes, axis=-1)
            for (name, shape), part in zip(self._vectors.items(), columns, strict=True):
                parts[name] = tf.reshape(part, (-1, *shape))
        parts.update({name: pixels(inputs[name]) for name in self._images})
        return self._joined(parts)

    def symbolic(self) -> Any:
        """Returns what `of` does, as Keras' stand-ins for tensors."""
        return self._joined(
            {name: keras.KerasTensor((None, *s), "float32") for name, s in self._shapes.items()}
        )

    def random_rows(self, rng: np.random.Generator) -> Any:
        """Returns two rows of numbers between 0 and 1."""
        return self._joined(
            {name: tf.constant(rng.random((2, *s), np.float32)) for name, s in self._shapes.items()}
        )

    def _joined(self, parts: dict[str, Any]) -> Any:
        return parts if self._is_dict else next(iter(parts.values()))
