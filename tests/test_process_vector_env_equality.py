"""Same seeds, same numbers as SyncVectorEnv, bit for bit."""

import functools

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple
from gymnasium.vector import AutoresetMode
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stub_envs import INFO_KINDS, SPACES, SampleEnv, WordSpace
from sync_oracle import assert_same, both, run_alike

from batchgym import ProcessVectorEnv

MODES = list(AutoresetMode)
ACTION_SPACES = {
    "discrete": Discrete(4, start=1),
    "box": Box(-1, 1, (2, 2), np.float32),
    "double box": Box(-1, 1, (3,), np.float64),
    "multidiscrete": MultiDiscrete([2, 3]),
    "multibinary": MultiBinary(3),
    "dict": Dict(a=Box(-1, 1, (2,), np.float32), b=Discrete(3)),
    "tuple": Tuple([Discrete(3), Dict(x=Box(0, 1, (1,), np.float32))]),
    "text": Text(4),
    "partly text": Dict(t=Text(4), d=Discrete(2)),
}


@pytest.mark.parametrize("name", SPACES)
def test_every_space(name):
    check_space(name, MODES[sorted(SPACES).index(name) % 3])


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("name", SPACES)
def test_every_space_in_every_mode(name, mode):
    check_space(name, mode)


def check_space(name, mode):
    fns = [functools.partial(SampleEnv, SPACES[name]) for _ in range(3)]
    ours, theirs = both(fns, autoreset_mode=mode)
    run_alike(ours, theirs, 25, np.random.default_rng(0), mode)
    ours.close()


@pytest.mark.parametrize("name", ["box", "nested", "partly text", "custom", "graph"])
def test_without_shared_memory(name):
    fns = [functools.partial(SampleEnv, SPACES[name]) for _ in range(3)]
    ours, theirs = both(fns, shared_memory=False)
    run_alike(ours, theirs, 25, np.random.default_rng(0), AutoresetMode.NEXT_STEP)
    ours.close()


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("infos", INFO_KINDS)
def test_infos(infos, mode):
    fns = [functools.partial(SampleEnv, SPACES["box"], infos=infos) for _ in range(5)]
    ours, theirs = both(fns, autoreset_mode=mode)
    run_alike(ours, theirs, 150, np.random.default_rng(1), mode)
    ours.close()


@pytest.mark.parametrize("name", ACTION_SPACES)
def test_actions_reach_environments_unchanged(name):
    space = ACTION_SPACES[name]
    fns = [functools.partial(SampleEnv, SPACES["box"], space) for _ in range(3)]
    ours, theirs = both(fns)
    ours.reset(seed=0)
    theirs.reset(seed=0)
    for _ in range(3):
        actions = theirs.action_space.sample()
        assert_same(ours.step(actions), theirs.step(actions))
        assert ours.call("action_type") == theirs.call("action_type")
    ours.close()


@pytest.mark.parametrize(
    "actions",
    [
        np.array([1, 2, 0]),
        np.array([1, 2, 0], np.int32),
        np.array([1, 2, 0], np.uint8),
        np.array([1.5, 2.5, 0.0]),
        [1, 2, 0],
        (np.int64(1), 2, np.int8(0)),
        np.array([[1], [2], [0]]),
        np.array([1, 2, 0], dtype=">i4"),
        np.array([1, 2, 0], np.longdouble),
        np.array([5, 1, 5, 2, 5, 0])[1::2],
    ],
    ids=lambda a: f"{type(a).__name__} {getattr(a, 'dtype', '')} {np.shape(a)}",
)
def test_actions_are_not_cast(actions):
    fns = [functools.partial(SampleEnv, SPACES["box"]) for _ in range(3)]
    ours, theirs = both(fns)
    ours.reset(seed=0)
    theirs.reset(seed=0)
    # Twice, and the usual dtype in between: the shared bytes change their meaning each time.
    for batch in (actions, np.array([0, 1, 2]), actions):
        assert_same(ours.step(batch), theirs.step(batch))
        assert ours.call("action_type") == theirs.call("action_type")
    ours.close()


any_case = given(
    space=st.sampled_from(sorted(SPACES)),
    infos=st.sampled_from(sorted(INFO_KINDS)),
    mode=st.sampled_from(MODES),
    num_envs=st.integers(1, 7),
    workers=st.sampled_from([(1, False), (2, False), (3, False), (0, True), (1, True), (2, True)]),
    shared=st.booleans(),
    end=st.sampled_from([0.0, 0.2, 1.0]),
    seed=st.integers(0, 100),
)


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@any_case
def test_any_case(**case):
    check_case(**case)


@pytest.mark.slow
@pytest.mark.timeout(900)
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@any_case
def test_many_cases(**case):
    check_case(**case)


def check_case(space, infos, mode, num_envs, workers, shared, end, seed):
    fns = [
        functools.partial(SampleEnv, SPACES[space], infos=infos, end=end) for _ in range(num_envs)
    ]
    ours, theirs = both(fns, workers[0], shared, workers[1], autoreset_mode=mode)
    run_alike(ours, theirs, 60, np.random.default_rng(seed), mode)
    ours.close()


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_thousands_of_steps_of_cartpole(mode):
    fns = [functools.partial(gym.make, "CartPole-v1")] * 7
    ours, theirs = both(fns, autoreset_mode=mode)
    run_alike(ours, theirs, 600, np.random.default_rng(2), mode)
    ours.close()


def test_half_cheetah_with_its_infos(recwarn):
    pytest.importorskip("mujoco")
    fns = [functools.partial(gym.make, "HalfCheetah-v5", max_episode_steps=20)] * 5
    ours, theirs = both(fns)
    run_alike(ours, theirs, 100, np.random.default_rng(3), AutoresetMode.NEXT_STEP)
    ours.close()


def test_different_spaces():
    fns = [lambda high=high: SampleEnv(Box(0, high, (2,), np.float32)) for high in (1, 2, 3)]
    ours, theirs = both(fns, observation_mode="different")
    assert ours.observation_space == theirs.observation_space
    assert ours.single_observation_space == theirs.single_observation_space
    run_alike(ours, theirs, 10, np.random.default_rng(0), AutoresetMode.NEXT_STEP)
    ours.close()


def test_given_spaces():
    batched, single = Box(0, 9, (2, 2), np.float32), Box(0, 9, (2,), np.float32)
    fns = [lambda high=high: SampleEnv(Box(0, high, (2,), np.float32)) for high in (1, 2)]
    ours, theirs = both(fns, observation_mode=(batched, single))
    assert ours.observation_space == theirs.observation_space == batched
    assert ours.single_observation_space == theirs.single_observation_space == single
    run_alike(ours, theirs, 10, np.random.default_rng(0), AutoresetMode.NEXT_STEP)
    ours.close()


def test_batched_spaces_sample_alike():
    fns = [functools.partial(SampleEnv, SPACES["nested"], ACTION_SPACES["dict"])] * 3
    ours, theirs = both(fns)
    for space in ("action_space", "observation_space"):
        getattr(ours, space).seed(11)
        getattr(theirs, space).seed(11)
        assert_same(getattr(ours, space).sample(), getattr(theirs, space).sample())
    ours.close()


@pytest.mark.parametrize(
    "seed", [None, 3, np.int64(3), [1, None, 4], np.array([5, 6, 7]), (1, 2, 3)]
)
def test_seeds(seed):
    fns = [functools.partial(SampleEnv, SPACES["box"])] * 3
    ours, theirs = both(fns)
    ours.reset(seed=1)
    theirs.reset(seed=1)
    plain = [int(s) if s is not None else None for s in seed] if np.ndim(seed) else seed
    plain = int(plain) if isinstance(plain, np.integer) else plain
    if plain is None:
        # Unseeded resets continue each environment's own stream.
        assert_same(ours.reset(), theirs.reset())
    else:
        assert_same(ours.reset(seed=seed), theirs.reset(seed=plain))
    assert ours.np_random_seed == theirs.np_random_seed
    ours_next = [rng.random() for rng in ours.np_random]
    assert ours_next == [rng.random() for rng in theirs.np_random]
    ours.close()


def test_unseeded_environments_differ():
    ours = ProcessVectorEnv([functools.partial(SampleEnv, SPACES["box"])] * 4, num_workers=2)
    ours.reset()
    assert len(set(ours.np_random_seed)) == 4
    ours.close()


def test_word_space_is_batched_as_a_tuple():
    ours = ProcessVectorEnv([functools.partial(SampleEnv, WordSpace())] * 3, num_workers=2)
    observations, _ = ours.reset(seed=0)
    assert isinstance(observations, tuple)
    assert all(word.startswith("word") for word in observations)
    ours.close()


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("infos", ["numeric", "mixed"])
def test_actions_in_changing_forms(mode, infos):
    make = [lambda: SampleEnv(Box(-1, 1, (3,)), infos=infos)] * 4
    ours, theirs = both(make, autoreset_mode=mode)
    assert_same(ours.reset(seed=3), theirs.reset(seed=3))
    rng = np.random.default_rng(0)
    forms = [lambda a: a, lambda a: a, lambda a: a.astype(np.int32), list]
    for _ in range(60):
        actions = forms[rng.integers(4)](ours.action_space.sample())
        found, wanted = ours.step(actions), theirs.step(actions)
        assert_same(found, wanted)
        if mode is AutoresetMode.DISABLED and (ended := found[2] | found[3]).any():
            options = {"reset_mask": ended}
            assert_same(ours.reset(options=options), theirs.reset(options=options))
    ours.close()
    theirs.close()
