"""What a model file claims is checked before it is believed."""

import io
import json
import shutil
import zipfile

import numpy as np
import pytest
from ppo_envs import TargetEnv
from test_model_file import npy, rewritten

from batchppo import BatchPPO, load_policy
from batchppo.errors import ModelFileError


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.zip"
    agent = BatchPPO("MlpPolicy", TargetEnv(), policy_kwargs={"net_arch": [3]}, seed=0)
    agent.save(path)
    return path


@pytest.fixture
def path(sound, tmp_path):
    return shutil.copy(sound, tmp_path / "model.zip")


def with_document(path, change):
    """Writes the model anew with a changed document."""

    def member(name, content):
        if name != "model.json":
            return content
        document = json.loads(content)
        change(document)
        return json.dumps(document)

    return rewritten(path, member)


def setting(*keys_and_value):
    *keys, last, value = keys_and_value

    def change(document):
        for key in keys:
            document = document[key]
        document[last] = value

    return change


BOX = {"type": "Box", "low": 0.0, "high": 1.0, "dtype": "float32"}


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (setting("policy", "os.system"), "unknown policy 'os.system'"),
        (setting("config", "learning_rate", {"schedule": "os.system"}), "unknown schedule"),
        (setting("config", "evil", 1), "unknown hyperparameter 'evil'"),
        (setting("config", []), "is not valid"),
        (setting("architecture", "activation", "os.system"), "unknown activation 'os.system'"),
        (setting("architecture", "cell", "os"), "cell must be None or one of"),
        (setting("architecture", "cell", "lstm"), "no array 'weights/actor_cell/kernel'"),
        (setting("architecture", "pi", [10**9, 10**9]), r"expected \(2, 1000000000\)"),
        (setting("architecture", "pi", "ab"), "pi must be a list"),
        (setting("observation_space", {"type": "os.system"}), "does not describe a space"),
        (setting("observation_space", "gymnasium.spaces.Box"), "does not describe a space"),
        (setting("observation_space", {"type": "Discrete", "n": 10**15, "start": 0}), "at most"),
        (setting("observation_space", {"type": "MultiBinary", "n": [10**9, 10**9]}), "at most"),
        (setting("observation_space", {**BOX, "shape": [10**9, 10**9]}), "at most"),
        (setting("action_space", {**BOX, "shape": [10**12]}), "at most"),
        (setting("action_space", None), "does not describe a space"),
        (setting("seed", -1), "seed is -1, expected a whole number"),
        (setting("seed", "x"), "seed is 'x', expected a whole number"),
        (setting("num_envs", 10**12), "num_envs is 1000000000000, expected"),
        (setting("num_timesteps", 1.5), "num_timesteps is 1.5, expected"),
        (setting("n_updates", True), "n_updates is True, expected"),
        (setting("kl_penalty", -1.0), "kl_penalty is -1.0, expected"),
        (setting("random", {}), "no entry 'actions'"),
        (setting("random", "actions", {"bit_generator": "os.system"}), "no state of a generator"),
    ],
)
def test_wrong_claims_are_refused(path, change, match):
    with_document(path, change)
    for load in (load_policy, BatchPPO.load):
        with pytest.raises(ModelFileError, match=match) as caught:
            load(path)
        assert str(path) in str(caught.value)


def test_every_entry_that_is_missing_is_named(path, sound):
    for name in ("policy", "config", "architecture", "observation_space", "action_space", "seed",
                 "num_envs", "num_timesteps", "n_updates", "kl_penalty", "random"):  # fmt: skip
        shutil.copy(sound, path)
        with_document(path, lambda document, name=name: document.pop(name))
        with pytest.raises(ModelFileError, match=f"has no entry '{name}'"):
            load_policy(path)


KERNEL = "arrays/weights/actor/0/kernel.npy"


@pytest.mark.parametrize(
    ("name", "array", "match"),
    [
        (KERNEL, np.ones((3, 2), np.float32), r"has shape \(3, 2\), expected \(2, 3\)"),
        (KERNEL, np.full((2, 3), np.nan, np.float32), "holds NaN or infinity"),
        (KERNEL, np.ones((2, 3), np.float64), "holds float64, expected float32"),
        (KERNEL, np.ones((2, 3), np.int64), "holds int64, expected float32"),
        ("arrays/optimizer/2.npy", np.full((2, 3), np.inf, np.float32), "'optimizer/2' holds NaN"),
        ("arrays/reward_moments/squares.npy", np.full(1, -1.0), "negative count or variance"),
        ("arrays/observation_moments/count.npy", np.full(1, -1.0), "negative count or variance"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(path, name, array, match):
    rewritten(path, lambda n, c: npy(array) if n == name else c)
    with pytest.raises(ModelFileError, match=match):
        load_policy(path)


def test_a_weight_too_many_is_refused(path):
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("arrays/weights/actor/9/kernel.npy", npy(np.ones(1, np.float32)))
    with pytest.raises(ModelFileError, match="has an array 'weights/actor/9/kernel', this model"):
        load_policy(path)


@pytest.mark.parametrize("array", [None, np.ones(7, np.float32)])
def test_an_optimizer_that_does_not_fit_is_refused_with_the_file_s_name(path, array):
    """Only training needs it: the policy alone can be loaded."""
    name = "arrays/optimizer/2.npy"
    rewritten(path, lambda n, c: (None if array is None else npy(array)) if n == name else c)
    with pytest.raises(ModelFileError, match=f"{path}: optimizer array 2: expected shape"):
        BatchPPO.load(path)
    assert load_policy(path).predict(np.zeros(2))[0].shape == (1,)


def test_a_model_in_memory():
    agent = BatchPPO("MlpPolicy", TargetEnv(), policy_kwargs={"net_arch": [3]}, seed=0)
    stream = io.BytesIO()
    agent.save(stream)
    for loaded in (load_policy(stream), BatchPPO.load(stream)):
        expected = agent.predict(np.ones(2), deterministic=True)[0]
        assert loaded.predict(np.ones(2), deterministic=True)[0] == expected
