"""The features extractor that `policy_kwargs` give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from batchppo.keras_config import gist
from batchppo.user_extractor import seeded


def given_layer(policy_kwargs: Mapping[str, Any] | None) -> keras.Layer | None:
    """Returns the layer that `policy_kwargs` give or describe; None if they do not.

    Raises:
        TypeError: what is given is no Keras layer.
        ValueError: keys that do not go together, or a class that cannot be called so.
    """
    kwargs = policy_kwargs or {}
    layer, kind = kwargs.get("features_extractor"), kwargs.get("features_extractor_class")
    arguments = kwargs.get("features_extractor_kwargs")
    if kind is None and arguments:
        raise ValueError("features_extractor_kwargs need a features_extractor_class")
    if kind is not None and layer is not None:
        raise ValueError("give features_extractor (a layer) or features_extractor_class, not both")
    if kind is None:
        if layer is not None and not isinstance(layer, keras.Layer):
            raise TypeError(
                f"features_extractor must be a keras.Layer or keras.Model, got {layer!r}; for a "
                f"class, write features_extractor_class="
            )
        return layer
    if not (isinstance(kind, type) and issubclass(kind, keras.Layer)):
        raise TypeError(
            f"features_extractor_class must be a class derived from keras.Layer or keras.Model, "
            f"got {kind!r}; a module of torch has to be written anew in Keras"
        )
    return _made(kind, dict(arguments or {}))


def _made(kind: type, arguments: dict[str, Any]) -> keras.Layer:
    try:
        with seeded(0):
            return kind(**arguments)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"features_extractor_class={kind.__name__} was called as {kind.__name__}(**"
            f"features_extractor_kwargs) with {arguments}: {gist(error)}. Unlike in "
            f"Stable-Baselines3, there is no observation_space: a Keras layer is told what it "
            f"reads in build()"
        ) from error
