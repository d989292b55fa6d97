"""A user's own Keras layer between observations and dense layers."""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv
from ppo_envs import CountingEnv, CueEnv, PictureAndWordEnv, PictureEnv, RecallEnv
from user_layers import Combined, Scale, Tower

from batchppo import BatchPPO, evaluate_policy, learner, load_policy
from batchppo.errors import ModelFileError, SpaceError
from batchppo.observations import ObservationEncoder
from batchppo.observed import ObservedInputs
from batchppo.user_extractor import check, describe

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _plain_graph(monkeypatch):
    """Compiling takes seconds and does not matter here."""
    monkeypatch.setattr(learner, "JIT_COMPILE", False)


def agent_of(policy="MlpPolicy", make=CountingEnv, seed=0, **kwargs):
    env = SyncVectorEnv([make] * 2)
    return BatchPPO(
        policy, env, seed=seed, n_steps=8, n_epochs=1, sequence_length=4,
        policy_kwargs={"net_arch": [6], **kwargs},
    )  # fmt: skip


def weights_of(agent):
    return agent.get_parameters()["weights"]


def extractor_weights(agent):
    return {name: w for name, w in weights_of(agent).items() if "extractor" in name}


def all_equal(one, two):
    return one.keys() == two.keys() and all(np.array_equal(one[name], two[name]) for name in one)


# What the layer reads


def encoded(space, observation, images=False, mask_size=None):
    encoder = ObservationEncoder(space, images=images, mask_size=mask_size)
    batch, _ = encoder.as_batch(observation)
    inputs = {name: tf.constant(array) for name, array in encoder.encode(batch).items()}
    observed = ObservedInputs(encoder)
    rows = observed.of(inputs)
    read = tf.nest.map_structure(lambda rows: rows.numpy()[0].tolist(), rows)
    shapes = tf.nest.map_structure(lambda rows: tuple(rows.shape[1:]), rows)
    assert shapes == observed.shapes
    return read


@pytest.mark.parametrize(
    ("space", "observation", "reads"),
    [
        (spaces.Box(0, 9, (2, 2), np.float32), [[1, 2], [3, 4]], [[1, 2], [3, 4]]),
        (spaces.Box(0, 9, (), np.float32), 5.0, [5]),
        (spaces.Discrete(3, start=5), 6, [0, 1, 0]),
        (spaces.MultiDiscrete([2, 3]), [1, 2], [0, 1, 0, 0, 1]),
        (spaces.MultiBinary((2, 2)), [[1, 0], [0, 1]], [[1, 0], [0, 1]]),
    ],
    ids=str,
)
def test_it_reads_observations_in_their_own_shape(space, observation, reads):
    assert encoded(space, np.asarray(observation)) == reads


def test_it_reads_bytes_of_images_from_0_to_1():
    space = spaces.Box(0, 255, (4, 3, 3), np.uint8)
    image = np.full((4, 3, 3), 51, np.uint8)
    image[1, 2] = 255
    read = np.array(encoded(space, image, images=True))
    assert read == pytest.approx(np.where(image == 51, 0.2, 1.0))


def test_it_reads_images_with_the_channels_last():
    space = spaces.Box(0, 255, (2, 5, 4), np.uint8)
    image = np.zeros((2, 5, 4), np.uint8)
    image[1, 4, 0] = 255
    read = np.array(encoded(space, image, images=True))
    assert read.shape == (5, 4, 2)
    assert np.argwhere(read).tolist() == [[4, 0, 1]]


def test_it_reads_a_dict_by_name_without_the_mask():
    space = spaces.Dict(
        a=spaces.Box(0, 9, (2,), np.float32),
        action_mask=spaces.MultiBinary(3),
        eye=spaces.Box(0, 255, (1, 1, 1), np.uint8),
        more=spaces.Dict(b=spaces.Discrete(2), c=spaces.Box(0, 9, (1, 2), np.float64)),
    )
    observation = {
        "a": np.array([1, 2], np.float32),
        "action_mask": np.ones(3, np.int8),
        "eye": np.array([[[255]]], np.uint8),
        "more": {"b": 1, "c": np.array([[3.0, 4.0]])},
    }
    read = encoded(space, observation, images=True, mask_size=3)
    assert read == {"a": [1, 2], "eye": [[[1]]], "more.b": [0, 1], "more.c": [[3, 4]]}


def test_two_entries_of_one_name_are_refused():
    box = spaces.Box(0, 1, (1,), np.float32)
    space = spaces.Dict({"a.b": box, "a": spaces.Dict(b=box)})
    with pytest.raises(SpaceError, match="two entries have the same name"):
        ObservedInputs(ObservationEncoder(space))


# Training, saving, loading


def pictures():
    return keras.Sequential([keras.layers.Conv2D(2, 18, 18), keras.layers.Flatten()])


KINDS = {
    "class": ("MlpPolicy", CountingEnv, {
        "features_extractor_class": Tower, "features_extractor_kwargs": {"width": 5}}, 4),
    "two of them": ("MlpPolicy", CountingEnv, {
        "features_extractor": Scale(), "share_features_extractor": False}, 4),
    "images and memory": ("CnnGruPolicy", PictureEnv, {
        "features_extractor": pictures(), "recurrent_size": 3}, 2),
    "Dict": ("MultiInputPolicy", PictureAndWordEnv, {"features_extractor_class": Combined}, 4),
    "slow: memory, two of them": ("MlpLstmPolicy", CountingEnv, {
        "features_extractor_class": Tower, "share_features_extractor": False,
        "recurrent_size": 3}, 8),
}  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=pytest.mark.slow) if k.startswith("slow") else k for k in KINDS],
)
def test_it_is_trained_saved_and_loaded(kind, tmp_path):
    policy, make, kwargs, count = KINDS[kind]
    agent = agent_of(policy, make, **kwargs)
    before = extractor_weights(agent)
    assert len(before) == count
    agent.learn(32)
    after = extractor_weights(agent)
    for name in before:
        # `Scale` has a frozen weight, its second.
        assert np.array_equal(before[name], after[name]) == name.endswith("1/variable"), name
    agent.save(tmp_path / "model")
    loaded = BatchPPO.load(tmp_path / "model", agent.get_env())
    assert all_equal(weights_of(loaded), weights_of(agent))
    observations, _ = agent.get_env().reset(seed=1)
    expected, _ = agent.predict(observations, deterministic=True)
    for other in (loaded, load_policy(tmp_path / "model")):
        assert np.array_equal(other.predict(observations, deterministic=True)[0], expected)
    if kind == "two of them":  # resuming does not depend on what the layer is
        resumed = [
            BatchPPO.load(tmp_path / "model", SyncVectorEnv([make] * 2)).learn(
                16, reset_num_timesteps=False
            )
            for _ in range(2)
        ]
        assert resumed[0].num_timesteps == 48
        assert all_equal(*map(weights_of, resumed))
        assert not all_equal(weights_of(resumed[0]), weights_of(agent))


def test_the_ratio_is_1_before_the_first_step(monkeypatch):
    layer = keras.Sequential([keras.layers.Dense(8), keras.layers.Dropout(0.5)])
    with pytest.warns(UserWarning, match="Dropout"):
        agent = agent_of(features_extractor=layer)
    agent.learning_rate = 0.0
    figures, learn = [], agent._learner.learn
    monkeypatch.setattr(agent._learner, "learn", lambda *given: figures.append(learn(*given)) or {})
    agent.learn(16)
    assert figures[0]["train/approx_kl"] == pytest.approx(0.0, abs=1e-6)
    assert figures[0]["train/clip_fraction"] == 0.0


def test_the_seed_settles_the_weights_and_nothing_else():
    import random

    random.seed(5)
    expected = random.random()
    random.seed(5)
    kwargs = {"features_extractor_class": Tower, "share_features_extractor": False}
    one, same, other = (weights_of(agent_of(seed=seed, **kwargs)) for seed in (1, 1, 2))
    assert all_equal(one, same)
    kernel = "extractor/0/kernel"
    assert not np.array_equal(one[kernel], other[kernel])
    assert not np.array_equal(one[kernel], one[f"critic_{kernel}"])
    assert random.random() == expected


@pytest.mark.parametrize("share", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_built_model_gives_its_weights_and_keeps_them(share):
    inputs = keras.Input((3,))
    middle = keras.layers.Dense(4, name="middle")
    model = keras.Model(inputs, keras.layers.Dense(2)(middle(inputs)))
    middle.trainable = False
    given = [w.copy() for w in model.get_weights()]
    agent = agent_of(features_extractor=model, share_features_extractor=share)
    trained, frozen = ["2/kernel", "3/bias"], ["0/kernel", "1/bias"]
    prefixes = ["extractor/"] if share else ["extractor/", "critic_extractor/"]
    for prefix in prefixes:
        start = [extractor_weights(agent)[prefix + name] for name in frozen + trained]
        assert all(map(np.array_equal, start, given))
    agent.learn(16)
    for prefix in prefixes:
        now = extractor_weights(agent)
        assert np.array_equal(now[f"{prefix}0/kernel"], given[0])
        assert not np.array_equal(now[f"{prefix}2/kernel"], given[2])
    assert all(map(np.array_equal, model.get_weights(), given))


def test_batch_normalization_of_a_trained_model_stays_as_it_is():
    model = keras.Sequential([keras.Input((3,)), keras.layers.BatchNormalization()])
    gamma, beta, mean, variance = model.get_weights()
    model.set_weights([gamma, beta, mean + 2.0, variance * 4.0])
    agent = agent_of(features_extractor=model).learn(16)
    weights = extractor_weights(agent)
    assert weights["extractor/2/moving_mean"].tolist() == [2.0] * 3
    assert weights["extractor/3/moving_variance"].tolist() == [4.0] * 3
    assert weights["extractor/0/gamma"].tolist() != [1.0] * 3


def test_parameters_can_be_set():
    one, two = (agent_of(seed=seed, features_extractor_class=Tower) for seed in (1, 2))
    two.set_parameters(one.get_parameters())
    assert all_equal(weights_of(one), weights_of(two))
    with pytest.raises(ModelFileError, match="extractor/0/kernel"):
        two.set_parameters({"weights": {"extractor/0/kernel": np.zeros((9, 9))}}, exact_match=False)


def test_images_may_be_smaller_than_the_usual_convolutions_need():
    class Small(PictureEnv):
        observation_space = spaces.Box(0, 255, (6, 6, 1), np.uint8)

        def _draw(self):
            return super()._draw()[::6, ::6]

    agent = agent_of("CnnPolicy", Small, features_extractor=keras.layers.Flatten())
    assert weights_of(agent)["actor/0/kernel"].shape == (36, 6)


def test_the_default_of_net_arch_is_that_of_stable_baselines3():
    agent = BatchPPO(
        "CnnPolicy", PictureEnv(), policy_kwargs={"features_extractor": pictures()}, n_steps=8
    )
    assert (agent.architecture.pi, agent.architecture.vf) == ((64, 64), (64, 64))


@pytest.mark.slow
def test_histograms_know_what_is_frozen():
    env = SyncVectorEnv([CountingEnv] * 2)
    kwargs = {"features_extractor": Scale(), "net_arch": [4]}
    agent = BatchPPO(
        "MlpPolicy", env, n_steps=8, n_epochs=1, policy_kwargs=kwargs, log_histograms=True
    )
    assert agent.learn(16).num_timesteps == 16


# What is refused


@keras.saving.register_keras_serializable(package="tests")
class Secretive(keras.layers.Layer):
    """Has a number that its config does not tell."""

    factor = 1.0

    def call(self, rows):
        return rows * self.factor


def secretive():
    layer = Secretive()
    layer.factor = 3.0
    layer(np.ones((1, 3), np.float32))
    return layer


@keras.saving.register_keras_serializable(package="tests")
class Lonely(keras.layers.Layer):
    """Would be called with an observation space by Stable-Baselines3."""

    def __init__(self, observation_space, features_dim=8):
        super().__init__()


def frozen_later():
    tower = Tower(4)
    tower(np.ones((1, 3), np.float32))
    tower.second.trainable = False
    return tower


L = keras.layers


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: {"features_extractor": Tower}, "got <class.*write features_extractor_class="),
        (lambda: {"features_extractor_class": dict}, "derived from keras.Layer.*got <class 'dict'"),
        (lambda: {"features_extractor_kwargs": {"width": 2}}, "need a features_extractor_class"),
        (
            lambda: {"features_extractor": Tower(), "features_extractor_class": Tower},
            "not both",
        ),
        (
            lambda: {"features_extractor_class": Lonely},
            r"called as Lonely\(\*\*features_extractor_kwargs\).*'observation_space'.*no observ",
        ),
        (
            lambda: {
                "features_extractor_class": Tower, "features_extractor_kwargs": {"widht": 2}
            },
            "called as Tower.*widht",
        ),
        (lambda: {"features_extractor": Tower(), "features_dim": 8}, "features_dim is for the"),
        (
            lambda: {"features_extractor": keras.Sequential([keras.Input((5,)), L.Dense(2)])},
            r"cannot read rows of shape \(3,\).*declares \[\(None, 5\)\].*\(None, 5\), found",
        ),
        (lambda: {"features_extractor": L.Conv2D(2, 3)}, r"rows of shape \(3,\).*min_ndim=4"),
        (lambda: {"features_extractor": L.Reshape((3, 1))}, r"puts out \(None, 3, 1\), expected"),
        (
            lambda: {"features_extractor": L.Dense(2, kernel_regularizer="l2")},
            "adds losses of its own",
        ),
        (
            lambda: {"features_extractor": keras.Sequential([L.BatchNormalization()])},
            "moving_mean' was never trained.*LayerNormalization",
        ),
        (lambda: {"features_extractor": L.Dense(2, dtype="float64")}, "float64, expected float32"),
        (lambda: {"features_extractor": secretive()}, "computes something else than its copy"),
        (lambda: {"features_extractor": frozen_later()}, "frozen weights of which its get_config"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused(make, says):
    with pytest.raises((ValueError, TypeError), match=f"(?s){says}"):
        agent_of(**make())


def test_a_layer_that_was_built_on_something_else_is_refused():
    layer = L.Dense(2)
    layer(np.ones((1, 5), np.float32))
    with pytest.raises(ValueError, match=r"\[\(5, 2\), \(2,\)\], but one that reads \(3,\) has"):
        agent_of(features_extractor=layer)


# Model files


def changed(path, change):
    """Writes the model again with another document, and returns where."""
    target = path.with_name("changed.zip")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "model.json":
                document = json.loads(content)
                change(document["architecture"]["extractor"])
                content = json.dumps(document)
            new.writestr(name, content)
    return target


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.zip"
    agent_of(features_extractor=L.Dense(4)).save(path)
    return path


def test_a_claim_of_too_much_memory_is_found_before_any_is_taken(model):
    def claim(extractor):
        extractor["layer"]["config"]["units"] = 10**12  # a kernel of 12 terabytes

    with pytest.raises(ModelFileError, match="has 1000000000000 features.*the file says 4"):
        BatchPPO.load(changed(model, claim))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda e: e["layer"].update(module="os", class_name="system"), "'os.system' is not known"),
        (lambda e: e["layer"]["config"].update(units="x"), "cannot be made"),
        (lambda e: e.update(features=5), "shape .*expected"),
        (lambda e: e.update(features=-1), "must be whole numbers, got -1"),
        (lambda e: e["weights"].clear(), "array 'weights/extractor/0/kernel'"),
        (lambda e: e.update(layer=[]), "must be a JSON object"),
        (lambda e: e.update(code="x"), "unknown extractor key 'code'"),
        (lambda e: e.pop("weights"), "no entry 'weights'"),
    ],
)
@pytest.mark.parametrize("load", [BatchPPO.load, load_policy])
def test_a_file_that_was_tampered_with_is_refused(model, change, says, load):
    with pytest.raises(ModelFileError, match=f"changed.zip.*{says}"):
        load(changed(model, change))


def test_a_layer_that_is_not_registered_here_is_named_and_can_be_given(model):
    def rename(extractor):
        extractor["layer"].update(module="mine", class_name="Mine", registered_name="mine>Mine")

    class Mine(L.Dense):
        pass

    path = changed(model, rename)
    with pytest.raises(ModelFileError, match=r"'mine.Mine' is not known.*custom_objects=\{'Mine'"):
        BatchPPO.load(path)
    agent = BatchPPO.load(path, custom_objects={"Mine": Mine, "learning_rate": 1e-3})
    assert agent.learning_rate(1.0) == 1e-3
    policy = load_policy(path, custom_objects={"Mine": Mine})
    observation = np.array([1.0, 2.0, 3.0], np.float32)
    expected, _ = load_policy(model).predict(observation, deterministic=True)
    for loaded in (agent, policy):
        assert loaded.predict(observation, deterministic=True)[0] == expected
    agent.save(path)  # and the file still names it
    with pytest.raises(ModelFileError, match="'mine.Mine' is not known"):
        load_policy(path)
    with pytest.raises(TypeError, match="unknown argument 'Mina'"):
        BatchPPO.load(path, custom_objects={"Mine": Mine, "Mina": Mine})
    with pytest.raises(TypeError, match="custom_objects has 'Mina', which the model does not name"):
        load_policy(path, custom_objects={"Mine": Mine, "Mina": Mine})


def test_without_tensorflow_the_error_says_who_needs_it(model, tmp_path):
    script = (
        "import sys, batchppo\n"
        "sys.modules['tensorflow'] = None\n"
        "try:\n"
        f"    batchppo.load_policy({str(model)!r})\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
    )
    assert "has a features extractor, for which it needs TensorFlow" in done.stdout, done.stderr


def test_weights_are_checked_against_what_the_layer_is():
    encoder = ObservationEncoder(spaces.Box(-1, 1, (3,), np.float32))
    spec = describe(L.Dense(4), encoder)
    assert (spec.weights, spec.features) == ({"0/kernel": (3, 4), "1/bias": (4,)}, 4)
    check(spec, encoder)
    with pytest.raises(ValueError, match="the file says 4"):
        check(spec, ObservationEncoder(spaces.Box(-1, 1, (2,), np.float32)))


# Documentation and learning


def test_what_the_documentation_shows_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "ppo.md").read_text().partition("## A network of your own")[2]
    blocks = re.findall(r"```python\n(.*?)```", text.partition("\n## ")[0], re.DOTALL)
    assert len(blocks) == 2
    names = {"__name__": "example"}
    for block in blocks:
        exec(compile(block, "ppo.md", "exec"), names)
    assert names["agent"].num_timesteps > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "make", "optimum", "kwargs"),
    [
        ("MlpPolicy", CueEnv, 8.0, {"features_extractor_class": Tower}),
        ("CnnPolicy", PictureEnv, 8.0, {"features_extractor": pictures()}),
        ("MlpLstmPolicy", RecallEnv, 1.0, {
            "features_extractor_class": Tower, "recurrent_size": 16, "net_arch": []}),
        ("MultiInputPolicy", PictureAndWordEnv, 8.0, {
            "features_extractor_class": Combined, "share_features_extractor": False}),
    ],
    ids=["class", "images", "memory", "Dict"],
)  # fmt: skip
def test_it_reaches_the_optimum(policy, make, optimum, kwargs):
    settings = {"n_steps": 32, "batch_size": 64, "n_epochs": 6, "seed": 0, "sequence_length": 8}
    rate = 1e-2 if "Lstm" in policy else 3e-3
    agent = BatchPPO(
        policy, SyncVectorEnv([make] * 8), learning_rate=rate, gamma=0.9,
        policy_kwargs={"net_arch": [16], **kwargs}, **settings,
    )  # fmt: skip
    agent.learn(12_000)
    assert evaluate_policy(agent, SyncVectorEnv([make] * 8), 24)[0] >= optimum - 0.5
