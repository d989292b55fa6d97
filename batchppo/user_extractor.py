"""A user's own Keras layer as features extractor."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias, TypeVar

import keras
import numpy as np
import tensorflow as tf

from batchppo.extractor_spec import ExtractorSpec
from batchppo.keras_config import gist, layer_from_json, layer_to_json
from batchppo.observations import ObservationEncoder
from batchppo.observed import ObservedInputs

Shape: TypeAlias = tuple[int, ...]
Built = TypeVar("Built")


class Outline(NamedTuple):
    """What a layer is once it is built.

    Attributes:
        weights: the shapes of its weights by name, in its order.
        features: how many numbers it makes of a row.
    """

    weights: dict[str, Shape]
    features: int


class UserFeatures:
    """Calls a user's layer as in inference: what acts has to be what is trained.

    In training mode, Dropout and BatchNormalization would make the probabilities of the update
    others than those with which the actions were drawn, and the ratio would not be 1 at first.

    Args:
        prefix: what the names of its weights begin with.
        spec: the layer.
        encoder: what the inputs look like.
        seed: of those initial weights to which the layer gives no seed itself.

    Attributes:
        variables: what is trained, by name.
        frozen: weights that are not.
    """

    def __init__(
        self, prefix: str, spec: ExtractorSpec, encoder: ObservationEncoder, seed: int
    ) -> None:
        self._observed = ObservedInputs(encoder)
        with seeded(seed):
            self._layer = layer_from_json(spec.layer, spec.custom_objects)
            _features_of(self._layer, self._observed)
        weights = _named_weights(self._layer)
        trained = {id(variable) for variable in self._layer.trainable_weights}
        self.variables = {f"{prefix}/{n}": v for n, v in weights.items() if id(v) in trained}
        self.frozen = {f"{prefix}/{n}": v for n, v in weights.items() if id(v) not in trained}

    def __call__(self, inputs: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Returns the features, shape [B, features], of B rows of inputs."""
        features = self._layer(self._observed.of(inputs), training=False)
        return tf.cast(features, tf.float32)

    def start_from(self, given: keras.Layer) -> None:
        """Takes over the weights of the layer that this one was made after, if it has any.

        Raises:
            ValueError: they do not fit what the layer reads here, the layer is more than its
                `get_config` tells, or it has something that could have no effect.
        """
        if given.built:
            self._take_weights(given)
            self._require_equal(given)
        _require_no_losses(self._layer)
        _warn_of_training_mode(self._layer)

    def _take_weights(self, given: keras.Layer) -> None:
        came = [tuple(variable.shape) for variable in given.weights]
        expected = [tuple(variable.shape) for variable in self._layer.weights]
        if came != expected:
            raise ValueError(
                f"the features extractor '{given.name}' has weights of shapes {came}, but one that "
                f"reads {self._observed.shapes} has {expected}; give a layer that was built on "
                f"what it reads here, or one that was not built yet"
            )
        trains = [variable.trainable for variable in given.weights]
        if trains != [variable.trainable for variable in self._layer.weights]:
            raise ValueError(
                f"the features extractor '{given.name}' has frozen weights of which its "
                f"get_config() says nothing; freeze them in its __init__ or build"
            )
        for variable, source in zip(self._layer.weights, given.weights, strict=True):
            variable.assign(source)

    def _require_equal(self, given: keras.Layer) -> None:
        rows = self._observed.random_rows(np.random.default_rng(0))
        came, expected = (np.asarray(layer(rows, training=False)) for layer in (self._layer, given))
        if not np.allclose(came, expected, rtol=1e-3, atol=1e-4):
            raise ValueError(
                f"the features extractor '{given.name}' computes something else than its copy, "
                f"made of its get_config() and its weights, does; a model file would not hold what "
                f"it is. Keep all that it needs in add_weight(...) and get_config(), and nothing "
                f"random"
            )


def describe(layer: keras.Layer, encoder: ObservationEncoder) -> ExtractorSpec:
    """Returns what a model file says of a layer that reads inputs like the encoder's.

    Raises:
        ValueError: the layer cannot be stored, cannot read the inputs, or puts out something else
            than a row of features for each.
    """
    document = layer_to_json(layer)
    outline = _outline(ExtractorSpec(layer=document, weights={}, features=0), encoder)
    return ExtractorSpec(layer=document, weights=outline.weights, features=outline.features)


def check(spec: ExtractorSpec, encoder: ObservationEncoder) -> None:
    """Raises ValueError unless a layer has the weights and features that its file says.

    No memory is taken for the weights, so that a file cannot claim more than it has.
    """
    came = _outline(spec, encoder)
    expected = Outline(dict(spec.weights), spec.features)
    if came != expected:
        raise ValueError(
            f"the features extractor has {came.features} features and weights {came.weights}, the "
            f"file says {expected.features} and {expected.weights}"
        )


def _outline(spec: ExtractorSpec, encoder: ObservationEncoder) -> Outline:
    def outlined() -> Outline:
        # Variables have shapes, but no values, in such a scope.
        with keras.StatelessScope(initialize_variables=False), seeded(0):
            layer = layer_from_json(spec.layer, spec.custom_objects)
            features = _features_of(layer, ObservedInputs(encoder))
            weights = _named_weights(layer)
            _require_float32(layer, weights)
            shapes = {name: tuple(variable.shape) for name, variable in weights.items()}
        return Outline(shapes, features)

    return _in_a_thread(outlined)


def _in_a_thread(function: Callable[[], Built]) -> Built:
    """Returns what a function returns in a thread of its own.

    Keras keeps a list of variables without values for each thread; this one ends with its thread.
    """
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def _features_of(layer: keras.Layer, observed: ObservedInputs) -> int:
    """Builds a layer on what it will read and returns how many features it puts out."""
    try:
        output = layer(observed.symbolic(), training=False)
    except Exception as error:  # a user's build and call may raise anything
        raise ValueError(
            f"the features extractor '{layer.name}' cannot read rows of shape {observed.shapes}, "
            f"float32, that observations become{_declared(layer)}: {gist(error)}"
        ) from error
    if not (isinstance(output, keras.KerasTensor) and len(output.shape) == 2 and output.shape[1]):
        came = getattr(output, "shape", type(output).__name__)
        raise ValueError(
            f"the features extractor '{layer.name}' puts out {came}, expected (rows, features) "
            f"with a known number of features; end it with keras.layers.Flatten() or a Dense"
        )
    if not keras.backend.is_float_dtype(output.dtype):
        raise ValueError(
            f"the features extractor '{layer.name}' puts out {output.dtype}, expected floats"
        )
    return int(output.shape[1])


def _declared(layer: keras.Layer) -> str:
    """Returns what a model says that it reads, if it does."""
    inputs = layer.inputs if isinstance(layer, keras.Model) and layer.built else None
    if not inputs:
        return ""
    return f" (it declares {[tuple(tensor.shape) for tensor in inputs]})"


def _named_weights(layer: keras.Layer) -> dict[str, keras.Variable]:
    """Returns a layer's weights by names that are the same in every process.

    Keras counts the variables of a process that have no name of their own.
    """
    return {
        f"{i}/{variable.name.rstrip('0123456789').rstrip('_')}": variable
        for i, variable in enumerate(layer.weights)
    }


def _require_float32(layer: keras.Layer, weights: Mapping[str, keras.Variable]) -> None:
    for name, variable in weights.items():
        if keras.backend.standardize_dtype(variable.dtype) != "float32":
            raise ValueError(
                f"the features extractor '{layer.name}' has a weight '{name}' of {variable.dtype}, "
                f"expected float32; layers with dtype='mixed_float16' have such weights, too"
            )


def _require_no_losses(layer: keras.Layer) -> None:
    if layer.losses:
        raise ValueError(
            f"the features extractor '{layer.name}' adds losses of its own (a regularizer, or "
            f"add_loss), which are no part of PPO's; take them out"
        )


def _warn_of_training_mode(layer: keras.Layer) -> None:
    fresh = [
        variable.path
        for variable in layer.non_trainable_weights
        if variable.name == "moving_mean" and not np.any(variable)
    ]
    if fresh:
        raise ValueError(
            f"'{fresh[0]}' was never trained: a features extractor is always called as in "
            f"inference, so that BatchNormalization would never learn its statistics. Use "
            f"LayerNormalization, or a model that was trained before"
        )
    if len(layer.variables) > len(layer.weights):
        warnings.warn(
            f"the features extractor '{layer.name}' draws random numbers in training, as Dropout "
            f"does; here it never does, since what acts has to be what is trained",
            stacklevel=5,  # where the agent is made
        )


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Settles the seeds of initializers that have none: Keras takes them from `random`."""
    before = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)
