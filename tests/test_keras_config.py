"""Layers as JSON: what comes back is what went in, and nothing that a file names is run."""

import json
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from user_layers import Scale, Stranger, Tower

from batchppo.keras_config import layer_from_json, layer_to_json


@keras.saving.register_keras_serializable(package="tests")
def doubled(x):
    return 2.0 * x


def functional():
    inputs = keras.Input((3,))
    rows = keras.layers.Dense(4, activation="gelu", kernel_constraint="max_norm")(inputs)
    rows = keras.layers.Activation(doubled)(rows)
    rows = keras.ops.concatenate([keras.ops.tanh(rows) + 0.5, rows[:, 1:3] * np.ones(2, "f")], -1)
    return keras.Model(inputs, rows)


LAYERS = {
    "layer": lambda: keras.layers.Dense(2, kernel_initializer=keras.initializers.Orthogonal(3.0)),
    "sequential": lambda: keras.Sequential(
        [keras.layers.Rescaling(0.5), keras.layers.Dense(2), keras.layers.LayerNormalization()]
    ),
    "functional": functional,
    "recurrent": lambda: keras.Sequential(
        [keras.layers.Reshape((3, 1)), keras.layers.Bidirectional(keras.layers.GRU(2))]
    ),
    "user's": lambda: Tower(4),
    "user's in Keras'": lambda: keras.Sequential([Scale(), Tower(2)]),
}


@pytest.mark.parametrize("kind", LAYERS)
def test_what_comes_back_computes_the_same(kind):
    layer = LAYERS[kind]()
    rows = tf.constant(np.random.default_rng(0).random((5, 3), np.float32))
    expected = layer(rows)
    document = layer_to_json(layer)
    back = layer_from_json(json.loads(json.dumps(document)), {})
    back(rows)
    for ours, theirs in zip(back.weights, layer.weights, strict=True):
        ours.assign(theirs)
    np.testing.assert_allclose(back(rows), expected, rtol=1e-5)
    assert layer_to_json(back) == document


def test_how_a_model_was_compiled_and_built_is_left_out():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile("adam", "mse")
    text = json.dumps(layer_to_json(model))
    assert "compile_config" not in text
    assert "build_config" not in text


class Forgetful(keras.layers.Layer):
    def __init__(self, array):
        super().__init__()
        self.array = array


@keras.saving.register_keras_serializable(package="tests")
class Strict(keras.layers.Layer):
    """Forgets to hand on what every layer takes."""

    def __init__(self, width):
        super().__init__()
        self.width = width


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (Stranger, "Stranger' is not registered with Keras.*register_keras_serializable"),
        (lambda: keras.Sequential([Stranger()]), "Stranger' is not registered with Keras"),
        (lambda: keras.layers.Lambda(lambda x: x), "must not hold a Lambda, which holds Python"),
        (keras.layers.TextVectorization, "TextVectorization, which reads files"),
        (lambda: keras.layers.Rescaling(float("nan")), "could not be saved.*not JSON compliant"),
        (lambda: Forgetful(np.ones(2)), "could not be saved with the model; its get_config"),
    ],
    ids=["unregistered", "inside", "lambda", "files", "nan", "no get_config"],
)
def test_what_could_not_be_stored_is_refused(make, says):
    with pytest.raises(ValueError, match=f"(?s){says}"):
        layer_to_json(make())


def test_a_layer_that_cannot_be_made_again_is_told_how():
    with pytest.raises(ValueError, match=r"super\(\).__init__\(\*\*kwargs\).*unexpected keyword"):
        layer_from_json(layer_to_json(Strict(3)), {})


def entry(module, class_name, config=None, registered_name=None, **more):
    return {
        "module": module,
        "class_name": class_name,
        "config": {} if config is None else config,
        "registered_name": registered_name,
        **more,
    }


def inside(thing):
    """A harmless layer with `thing` where Keras would look for an initializer."""
    return entry("keras.layers", "Dense", {"units": 2, "kernel_initializer": thing})


SPY = "a_module_that_must_not_be_imported"


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (entry("os", "system"), "'os.system' is not known here"),
        (entry("subprocess", "Popen", {"args": ["true"]}, "Popen"), "subprocess.Popen"),
        (entry(SPY, "Layer"), f"{SPY}.Layer"),
        (entry(SPY, "Layer", registered_name="pkg>Layer"), "Layer' is not known"),
        (entry(SPY, "function", "run", "run"), f"{SPY}.run"),
        (entry("builtins", "function", "eval", "eval"), "builtins.eval"),
        (entry("builtins", "function", "deserialize", "deserialize"), "deserialize' is not"),
        (entry("keras.saving", "load_model"), "keras.saving.load_model"),
        (entry("keras.utils", "get_file", {"origin": "http://x"}), "keras.utils.get_file"),
        (entry("keras.src.saving.saving_lib", "DiskIOStore"), "DiskIOStore"),
        (entry("keras.optimizers", "Adam"), "keras.optimizers.Adam"),
        (entry("keras.layers", "TFSMLayer", {"filepath": "x"}), "must not hold a TFSMLayer"),
        (entry("keras.layers", "TorchModuleWrapper", {"module": "x"}), "TorchModuleWrapper"),
        (entry("keras.layers", "StringLookup", {"vocabulary": "/x"}), "StringLookup"),
        (entry("keras.layers", "Lambda"), "must not hold a Lambda"),
        ({"class_name": "__lambda__", "config": {"value": "x"}}, "must not hold a lambda"),
        ({"class_name": "__typespec__", "config": []}, "__typespec__' is not known"),
        ({"class_name": "Dense", "config": {"units": 3}}, "None.Dense' is not known"),
        ({"class_name": ["Dense"], "config": {}}, "is not known"),
        (
            {"class_name": "__numpy__", "config": {"value": [1], "dtype": "S999999999"}},
            "is not known",
        ),
        (
            entry("keras.layers", "Dense", {"units": 2}, build_config={"input_shape": [1, 10**9]}),
            "unknown entry 'build_config'",
        ),
        (
            entry("keras", "Sequential", {"layers": []}, compile_config={"optimizer": "adam"}),
            "unknown entry 'compile_config'",
        ),
    ],
    ids=lambda value: None if isinstance(value, str) else str(value)[:40],
)
@pytest.mark.parametrize("place", [lambda d: d, inside], ids=["outside", "inside"])
def test_a_file_can_only_name_parts_of_layers(document, says, place, tmp_path, monkeypatch):
    marker = tmp_path / "imported"
    (tmp_path / f"{SPY}.py").write_text(f"open({str(marker)!r}, 'w').close()")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=says):
        layer_from_json(place(document), {})
    assert not marker.exists()
    assert SPY not in sys.modules


@pytest.mark.parametrize(
    "document", [{"module": "keras.layers"}, entry("keras.initializers", "Zeros")], ids=str
)
def test_a_file_has_to_name_a_layer(document):
    with pytest.raises(ValueError, match="expected a Keras layer, got (dict|Zeros)"):
        layer_from_json(document, {})


@pytest.mark.parametrize("name", ["Late", "late>Late"])
def test_custom_objects_stand_for_what_is_not_registered_here(name):
    class Late(keras.layers.Layer):
        def call(self, rows):
            return rows + 1.0

    document = entry("elsewhere", "Late", {"name": "late"}, "late>Late")
    with pytest.raises(ValueError, match=r"'elsewhere.Late' is not known.*custom_objects=\{'Late'"):
        layer_from_json(document, {})
    assert isinstance(layer_from_json(document, {name: Late}), Late)


def test_custom_objects_come_before_registered_ones():
    class Other(keras.layers.Layer):
        def __init__(self, width, **kwargs):
            super().__init__(**kwargs)
            self.width = width

    assert isinstance(layer_from_json(layer_to_json(Tower(2)), {"Tower": Other}), Other)
