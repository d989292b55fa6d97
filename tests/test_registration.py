"""Ids, specs and `make_vec`."""

import copy
import functools
import json
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec, WrapperSpec
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from stub_envs import CountingEnv

import batchgym
from batchgym import ProcessVectorEnv

IDS = {
    "Counting-v0": {"entry_point": "stub_envs:CountingEnv", "kwargs": {"length": 4}},
    "space/Counting-v3": {"entry_point": CountingEnv},
    "Limited-v0": {"entry_point": "stub_envs:CountingEnv", "max_episode_steps": 2},
    "Wrapped-v0": {
        "entry_point": "stub_envs:CountingEnv",
        "additional_wrappers": (
            WrapperSpec("Clip", "gymnasium.wrappers:TransformReward", {"func": abs}),
            WrapperSpec("Limit", "gymnasium.wrappers:TimeLimit", {"max_episode_steps": 1}),
        ),
    },
}


@pytest.fixture(autouse=True)
def registered():
    before = dict(gym.registry)
    for env_id, arguments in IDS.items():
        gym.register(env_id, **arguments)
    yield
    gym.registry.clear()
    gym.registry.update(before)


def test_import_registers_and_the_module_prefix_imports():
    source = """
import gymnasium
assert "batchgym/CartPole-v1" not in gymnasium.registry
env = gymnasium.make_vec("batchgym:batchgym/CartPole-v1", num_envs=3, num_workers=1)
print(env)
env.close()
"""
    command = [sys.executable, "-W", "error", "-c", source]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.stderr == ""
    assert result.stdout == "ProcessVectorEnv(batchgym/CartPole-v1, num_envs=3)\n"


def test_every_registered_id_has_a_twin():
    batchgym.register_envs()
    for env_id, spec in gym.registry.items():
        if spec.namespace != "batchgym":
            assert f"batchgym/{env_id.replace('/', '-')}" in gym.registry


def test_registering_again_changes_nothing_and_adds_what_is_new():
    assert "batchgym/Counting-v0" not in gym.registry
    batchgym.register_envs()
    first = gym.registry["batchgym/Counting-v0"]
    batchgym.register_envs()
    assert gym.registry["batchgym/Counting-v0"] is first
    assert not any(env_id.startswith("batchgym/batchgym") for env_id in gym.registry)


def test_make_vec_of_gymnasium():
    batchgym.register_envs()
    env = gym.make_vec("batchgym/space-Counting-v3", num_envs=2, length=7, num_workers=1)
    assert isinstance(env, ProcessVectorEnv)
    assert env.get_attr("length") == (7, 7)
    assert env.spec.id == "batchgym/space-Counting-v3"
    env.close()


def test_spec_needs_no_registration():
    env = gym.make_vec(batchgym.spec("space/Counting-v3"), num_envs=2)
    assert isinstance(env, ProcessVectorEnv)
    env.close()
    with pytest.raises(gym.error.Error, match=r"No registered env|doesn't exist"):
        batchgym.spec("NoSuchThing-v0")
    assert batchgym.spec("gymnasium:CartPole-v1").id == "batchgym/CartPole-v1"


def test_id_without_version_is_the_newest():
    gym.register("Counting-v2", entry_point=CountingEnv)
    assert batchgym.spec("Counting").id == "batchgym/Counting-v2"


def test_spec_that_was_changed_is_not_mistaken_for_the_registered_one():
    spec = copy.deepcopy(gym.spec("Counting-v0"))
    spec.entry_point = lambda length: CountingEnv(length * 2)
    env = batchgym.make_vec(spec, 1)
    assert env.get_attr("length") == (8,)
    env.close()
    env = batchgym.make_vec("Counting-v0", 1)
    assert env.get_attr("length") == (4,)
    env.close()


def test_twins_follow_their_base():
    batchgym.register_envs()
    with pytest.warns(UserWarning, match="Overriding environment"):
        gym.register("Counting-v0", entry_point=CountingEnv, kwargs={"length": 11})
    batchgym.register_envs()
    assert gym.registry["batchgym/Counting-v0"].kwargs == {"length": 11}


def test_spec_of_a_spec():
    spec = EnvSpec("Unregistered-v0", entry_point=CountingEnv, kwargs={"length": 6})
    env = batchgym.make_vec(spec, 2)
    assert env.get_attr("length") == (6, 6)
    env.close()
    twin = batchgym.spec(spec)
    assert batchgym.spec(twin) is twin


def test_options_wrappers_and_arguments_in_one_call():
    env = batchgym.make_vec(
        "Counting-v0",
        3,
        num_workers=2,
        autoreset_mode=AutoresetMode.SAME_STEP,
        infos="none",
        wrappers=[
            functools.partial(gym.wrappers.TimeLimit, max_episode_steps=1),
            "gymnasium.wrappers:RecordEpisodeStatistics",
        ],
        render_mode="rgb_array",
    )
    assert (env.num_workers, env.infos, env.render_mode) == (2, "none", "rgb_array")
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    env.reset()
    *_, truncations, infos = env.step(np.zeros(3, np.int64))
    assert truncations.all()
    assert set(infos) == {"final_obs", "_final_obs"}
    env.close()


def test_an_argument_of_the_environment_with_a_reserved_name():
    gym.register("Copying-v0", entry_point=lambda copy: CountingEnv(length=copy))
    env = batchgym.make_vec("Copying-v0", 2, copy=False, env_kwargs={"copy": 5})
    assert env.copy is False
    assert env.get_attr("length") == (5, 5)
    env.close()


@pytest.mark.parametrize("env_id", ["Limited-v0", "Wrapped-v0"])
def test_limits_and_wrappers_of_the_base(env_id):
    limit = {"Limited-v0": 2, "Wrapped-v0": 1}[env_id]
    spec = batchgym.spec(env_id)
    for mode in (None, "sync"):
        env = gym.make_vec(spec, num_envs=2, vectorization_mode=mode)
        env.reset()
        truncated = [env.step(np.zeros(2, np.int64))[3].all() for _ in range(limit)]
        assert truncated == [False] * (limit - 1) + [True]
        env.close()
    env = gym.make_vec(batchgym.spec("Limited-v0"), num_envs=1, max_episode_steps=1)
    env.reset()
    assert env.step(np.zeros(1, np.int64))[3].all()
    env.close()


def test_other_vectorization_modes_of_the_twins():
    spec = batchgym.spec("Counting-v0")
    for mode, kind in (("sync", SyncVectorEnv), ("async", AsyncVectorEnv)):
        env = gym.make_vec(spec, num_envs=2, vectorization_mode=mode)
        assert isinstance(env, kind)
        assert env.get_attr("length") == (4, 4)
        env.close()
    assert gym.make(spec).unwrapped.length == 4


def test_spec_of_the_result_makes_the_same():
    first = batchgym.make_vec("Counting-v0", 3, num_workers=2, length=9, autoreset_mode="SameStep")
    again = gym.make_vec(first.spec)
    assert isinstance(again, ProcessVectorEnv)
    assert (again.num_envs, again.num_workers) == (3, 2)
    assert again.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert again.get_attr("length") == (9, 9, 9)
    first.close()
    again.close()


def test_spec_survives_json():
    env = batchgym.make_vec(
        "Counting-v0",
        2,
        autoreset_mode=AutoresetMode.DISABLED,
        wrappers=[gym.wrappers.RecordEpisodeStatistics],
    )
    text = env.spec.to_json()
    env.close()
    assert json.loads(text)["kwargs"]["autoreset_mode"] == "Disabled"
    again = gym.make_vec(EnvSpec.from_json(text))
    assert again.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    assert again.num_envs == 2
    assert again.get_attr("return_queue") is not None
    again.close()


def test_spec_with_what_json_cannot_store():
    env = batchgym.make_vec("Counting-v0", 1, wrappers=[lambda env: env])
    with pytest.raises(ValueError, match=r"`env_wrappers` contains <function .*lambda.*JSON"):
        env.spec.to_json()
    env.close()
    env = batchgym.make_vec("Counting-v0", 1, length=np.int64(4))
    with pytest.raises(ValueError, match=r"`length` contains np.int64\(4\)"):
        env.spec.to_json()
    env.close()


def test_bad_number_of_environments():
    for num_envs in (0, -1, 2.0):
        with pytest.raises(ValueError, match="`num_envs` must be a positive integer"):
            batchgym.make_vec("Counting-v0", num_envs)


def test_unknown_argument_names_itself():
    with pytest.raises(TypeError, match="no_such_argument"):
        batchgym.make_vec("Counting-v0", 1, no_such_argument=1)


@pytest.mark.parametrize(
    "wrapper",
    [
        gym.wrappers.vector.NormalizeObservation,
        gym.wrappers.vector.NormalizeReward,
        gym.wrappers.vector.RecordEpisodeStatistics,
        gym.wrappers.vector.FlattenObservation,
        gym.wrappers.vector.ClipReward,
        gym.wrappers.vector.DictInfoToList,
    ],
    ids=lambda wrapper: wrapper.__name__,
)
def test_vector_wrappers_do_as_on_sync_vector_env(wrapper):
    arguments = {"min_reward": -1, "max_reward": 1} if "Clip" in wrapper.__name__ else {}
    fns = [functools.partial(CountingEnv, length) for length in (2, 3)]
    ours = wrapper(ProcessVectorEnv(fns, num_workers=1), **arguments)
    theirs = wrapper(SyncVectorEnv(fns), **arguments)
    ours.reset(seed=0)
    theirs.reset(seed=0)
    for _ in range(8):
        our_result = ours.step(np.zeros(2, np.int64))
        their_result = theirs.step(np.zeros(2, np.int64))
        for our, their in zip(our_result[:4], their_result[:4], strict=True):
            np.testing.assert_array_equal(our, their)
        if isinstance(our_result[4], dict):
            our_result[4].get("episode", {}).pop("t", None)
            their_result[4].get("episode", {}).pop("t", None)
            assert our_result[4].keys() == their_result[4].keys()
        else:
            assert [sorted(info) for info in our_result[4]] == [
                sorted(info) for info in their_result[4]
            ]
    ours.close()


def test_partial_resets_keep_the_statistics_of_others():
    env = gym.wrappers.vector.RecordEpisodeStatistics(
        ProcessVectorEnv([functools.partial(CountingEnv, 9)] * 2, num_workers=1)
    )
    env.reset()
    env.step(np.zeros(2, np.int64))
    env.reset(options={"reset_mask": np.array([True, False])})
    assert env.episode_lengths.tolist() == [0, 1]
    env.close()
