"""Keras layers as JSON values, and back, without running or importing what a file names."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from copy import deepcopy
from types import FunctionType
from typing import Any

import keras

from batchppo.extractor_spec import class_entries, entry_names

_ALLOWED_KEYS = {"module", "class_name", "config", "registered_name", "name", "inbound_nodes"}
_LEFT_OUT = ("build_config", "compile_config")
"""Of no use here: layers are built on what they read, and it is the agent that trains them."""

_VALUES = ("__keras_tensor__", "__slice__", "__ellipsis__", "__numpy__", "__tensor__")
_NUMBERS = re.compile(r"bool|(u?int|b?float)\d\d?")

_COLOURS = re.compile("\x1b\\[[0-9;]*m")

_CLASSES: dict[str, tuple[type, ...]] = {
    "keras": (keras.Model, keras.DTypePolicy),
    "keras.layers": (keras.Layer,),
    "keras.models": (keras.Model,),
    "keras.src.models.functional": (keras.Model,),
    "keras.initializers": (keras.Initializer,),
    "keras.regularizers": (keras.Regularizer,),
    "keras.constraints": (keras.constraints.Constraint,),
    "keras.dtype_policies": (keras.DTypePolicy,),
    "keras.random": (keras.random.SeedGenerator,),
}
"""What is taken from which module."""

_OPERATIONS = "keras.src.ops."

_NO_ACTIVATIONS = ("serialize", "deserialize", "get")

_REFUSED = {
    "__lambda__": "is Python code",
    "Lambda": "holds Python code",
    "TFSMLayer": "reads a file and runs what is in it",
    "TorchModuleWrapper": "holds pickled objects",
    "JaxLayer": "holds Python code",
    "FlaxLayer": "holds Python code",
    "StringLookup": "reads files",
    "IntegerLookup": "reads files",
    "TextVectorization": "reads files",
}
"""What of Keras a model file must not name, and why."""


def layer_to_json(layer: keras.Layer) -> dict[str, Any]:
    """Returns a layer, without its weights, as JSON values.

    Raises:
        ValueError: the layer, or one inside of it, could not be made from such values in another
            process: it is not registered with Keras, has no complete `get_config` or holds code.
    """
    try:
        config = _without(keras.saving.serialize_keras_object(layer))
        document: dict[str, Any] = json.loads(json.dumps(config, allow_nan=False))
    except (NotImplementedError, TypeError, ValueError, OSError) as error:
        raise ValueError(
            f"the layer '{layer.name}' could not be saved with the model; its get_config() must "
            f"return numbers, texts, lists and Keras objects: {error}"
        ) from error
    _objects(
        document,
        {},
        "is not registered with Keras, so that a model file could not name it. Write "
        '@keras.saving.register_keras_serializable(package="my_package") above its definition',
    )
    return document


def layer_from_json(document: Mapping[str, Any], custom_objects: Mapping[str, Any]) -> keras.Layer:
    """Returns a new layer, without weights, of what `layer_to_json` returned.

    Nothing is imported and no code is read: names stand for classes of Keras, for what is
    registered in this process, or for `custom_objects`.

    Args:
        document: the layer as JSON values.
        custom_objects: classes and functions by name, in place of registered ones.

    Raises:
        ValueError: a name stands for nothing that is known or allowed, or a layer cannot be made
            of its own `get_config()`.
    """
    objects = _objects(
        document,
        custom_objects,
        "is not known here. Import the module that defines and registers it before loading, or "
        "give it: custom_objects={'%s': ...}",
    )
    try:
        with keras.saving.custom_object_scope(objects):
            layer = keras.saving.deserialize_keras_object(deepcopy(document), safe_mode=True)
    except Exception as error:  # a user's __init__ and from_config may raise anything
        raise ValueError(
            f"the layer {document.get('class_name')} cannot be made of what its get_config() "
            f"returned; that has to hold all arguments of __init__, and __init__ has to take "
            f"**kwargs and hand them to super().__init__(**kwargs). {gist(error)}"
        ) from error
    if not isinstance(layer, keras.Layer):
        raise ValueError(f"expected a Keras layer, got {type(layer).__name__}")
    return layer


def _objects(
    document: Mapping[str, Any], custom_objects: Mapping[str, Any], unknown: str
) -> dict[str, Any]:
    """Returns the classes and functions that are not of Keras, by their full names.

    Raises:
        ValueError: one is not known (as `unknown` says) or not allowed.
    """
    objects = dict(custom_objects)
    for entry in class_entries(document):
        names = entry_names(entry)
        given = next((custom_objects[name] for name in names if name in custom_objects), None)
        if names and given is None:
            given = keras.saving.get_registered_object(names[0])
        if given is not None:
            objects[names[0]] = given
        elif not _is_keras(entry):
            came = f"{entry.get('module')}.{names[-1] if names else entry['class_name']}"
            hint = unknown % names[-1] if "%s" in unknown and names else unknown
            raise ValueError(f"'{came}' {hint}")
        if surplus := set(entry) - _ALLOWED_KEYS:
            raise ValueError(f"the description of a layer has an unknown entry {min(surplus)!r}")
    return objects


def _is_keras(entry: Mapping[str, Any]) -> bool:
    """Returns whether an entry is one of Keras' own classes, functions or values.

    Raises:
        ValueError: it is, but holds code or reads files.
    """
    module, name, config = entry.get("module"), entry["class_name"], entry.get("config")
    if name in _VALUES:
        return _is_value(name, config)
    if name == "__lambda__":
        _require_allowed(name)
    if name == "function":
        found = vars(keras.activations).get(config) if isinstance(config, str) else None
        is_activation = isinstance(found, FunctionType) and config not in _NO_ACTIVATIONS
        return module == "builtins" and is_activation
    if not (isinstance(module, str) and isinstance(name, str)):
        return False
    # Modules that are loaded already, as all of Keras' are: nothing is imported here.
    found = vars(sys.modules[module]).get(name) if module in sys.modules else None
    if not isinstance(found, type):
        return False
    if module in _CLASSES:
        _require_allowed(found.__name__)
    if module.startswith(_OPERATIONS):
        return issubclass(found, keras.Operation) and not issubclass(found, keras.Layer)
    return issubclass(found, _CLASSES.get(module, ()))


def _require_allowed(name: str) -> None:
    if name in _REFUSED:
        raise ValueError(
            f"a features extractor must not hold a {name.strip('_')}, which {_REFUSED[name]}; "
            f"write a class MyLayer(keras.Layer) with a call() of its own instead"
        )


def _is_value(name: str, config: Any) -> bool:
    if name not in ("__numpy__", "__tensor__"):
        return True
    dtype = config.get("dtype") if isinstance(config, Mapping) else None
    return isinstance(dtype, str) and _NUMBERS.fullmatch(dtype) is not None


def _without(config: Any) -> Any:
    """Returns a layer's description without entries that are of no use here."""
    if isinstance(config, Mapping):
        left_out = _LEFT_OUT if "class_name" in config else ()
        return {key: _without(value) for key, value in config.items() if key not in left_out}
    return [_without(part) for part in config] if isinstance(config, (list, tuple)) else config


def gist(error: BaseException) -> str:
    """Returns the last line of what may be one of Keras' long messages: the cause."""
    text = _COLOURS.sub("", str(error)).partition("Arguments received by")[0]
    return text.strip().rpartition("\n")[2]
