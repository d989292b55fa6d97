"""batchgym's wrappers, and Gymnasium's that stand for those of the first batch-ppo."""

import functools
import json
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import ClipAction, DtypeObservation, RepeatAction, RescaleAction, TimeLimit

import batchgym
from batchgym import FrameDelta, FrameHistory, RandomStart


class StepsEnv(gymnasium.Env):
    """Observes [t, 10 t] at step t in one array that it reuses; terminated at step `length`."""

    observation_space = spaces.Box(0, np.array([50.0, 500.0], np.float32))

    def __init__(self, length=50):
        self.length = length
        self.action_space = spaces.Discrete(1000)
        self.actions = []
        self.resets = []
        self.observation = np.zeros(2, np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.resets.append((seed, options))
        self.actions.append([])
        return self._observe(), {"step": 0}

    def step(self, action):
        self.actions[-1].append(action)
        step = len(self.actions[-1])
        return self._observe(), float(step), step >= self.length, False, {"step": step}

    def _observe(self):
        self.observation[:] = np.array([1, 10]) * len(self.actions[-1])
        return self.observation


def first_numbers(env, steps):
    """The first number of each observation of an episode."""
    observations = [env.reset(seed=0)[0], *(env.step(0)[0] for _ in range(steps))]
    return [np.asarray(observation)[..., 0].tolist() for observation in observations]


# FrameHistory


def test_frame_history_shows_the_steps_that_are_asked_for_in_their_order():
    env = FrameHistory(StepsEnv(), past_indices=[0, 1, 4])
    expected = [[0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 2, 0], [4, 3, 0], [5, 4, 1], [6, 5, 2]]
    assert first_numbers(env, 6) == expected
    assert first_numbers(env, 6) == expected  # nothing is left of the episode before
    assert first_numbers(FrameHistory(StepsEnv(), [2, 0]), 3) == [[0, 0], [0, 1], [0, 2], [1, 3]]


def test_frame_history_joins_frames_along_their_first_axis():
    env = FrameHistory(StepsEnv(), [0, 2], flatten=True)
    env.reset()
    for _ in range(3):
        observation = env.step(0)[0]
    assert observation.tolist() == [3, 30, 1, 10]
    assert env.observation_space == spaces.Box(
        0, np.array([50, 500, 50, 500], np.float32), dtype=np.float32
    )


def test_frame_history_keeps_the_type_of_images():
    class Image(StepsEnv):
        observation_space = spaces.Box(0, 255, (4, 5, 3), np.uint8)

        def _observe(self):
            return np.full((4, 5, 3), len(self.actions[-1]), np.uint8)

    env = FrameHistory(Image(), [0, 1])
    assert env.observation_space == spaces.Box(0, 255, (2, 4, 5, 3), np.uint8)
    assert env.reset()[0] in env.observation_space


def test_observations_that_were_returned_do_not_change():
    for env in (FrameHistory(StepsEnv(), [0]), FrameDelta(StepsEnv())):
        env.reset()
        first = env.step(0)[0]
        kept = first.copy()
        env.step(0)
        assert first.tolist() == kept.tolist()


@pytest.mark.parametrize(
    ("indices", "says"),
    [
        ([1, 2], "have 0"),
        ([0, -1], "at least 0"),
        ([], "have 0"),
        ([0, 1.5], "whole numbers, got 1.5"),
    ],
)
def test_frame_history_refuses_other_indices(indices, says):
    with pytest.raises(ValueError, match=says):
        FrameHistory(StepsEnv(), indices)


# FrameDelta


def test_frame_delta_shows_what_changed_and_nothing_at_first():
    env = FrameDelta(StepsEnv())
    observations = [env.reset()[0], *(env.step(0)[0] for _ in range(3))]
    assert np.array(observations).tolist() == [[0, 0], [1, 10], [1, 10], [1, 10]]
    assert env.reset()[0].tolist() == [0, 0]
    assert env.observation_space == spaces.Box(
        np.array([-50, -500], np.float32), np.array([50, 500], np.float32)
    )


def test_frame_delta_of_bytes_does_not_wrap_around():
    class Falling(StepsEnv):
        observation_space = spaces.Box(0, 255, (1,), np.uint8)

        def _observe(self):
            return np.array([200 - len(self.actions[-1])], np.uint8)

    env = FrameDelta(Falling())
    env.reset()
    assert env.step(0)[0].tolist() == [-1.0]
    assert env.observation_space == spaces.Box(-255.0, 255.0, (1,), np.float32)


@pytest.mark.parametrize("wrapper", [FrameDelta, functools.partial(FrameHistory, past_indices=[0])])
def test_wrappers_of_observations_refuse_what_is_no_box(wrapper):
    env = gymnasium.make("FrozenLake-v1")
    with pytest.raises(TypeError, match=r"needs observations that are a Box, got Discrete\(16\)"):
        wrapper(env)


# RandomStart


def test_random_start_plays_between_none_and_all_of_its_steps():
    env = RandomStart(StepsEnv(), max_steps=3)
    env.reset(seed=0)
    for _ in range(200):
        observation, info = env.reset()
        played = len(env.unwrapped.actions[-1])
        assert observation[0] == info["step"] == played
    counts = np.bincount([len(actions) for actions in env.unwrapped.actions])
    assert len(counts) == 4
    assert counts.min() > 20


def test_random_start_follows_from_the_seed_alone():
    def starts(seed):
        env = RandomStart(StepsEnv(), max_steps=20)
        env.reset(seed=seed)
        env.reset()
        return env.unwrapped.actions

    assert starts(3) == starts(3)
    assert starts(3) != starts(4)


def test_random_start_leaves_the_random_numbers_of_others_alone():
    bare, wrapped = StepsEnv(), RandomStart(StepsEnv(), max_steps=20)
    for env in (bare, wrapped):
        env.action_space.seed(0)
        env.reset(seed=0)
    assert wrapped.unwrapped.np_random.random() == bare.np_random.random()
    assert wrapped.action_space.sample() == bare.action_space.sample()


def test_random_start_resets_again_where_the_episode_ends_within_it():
    env = RandomStart(StepsEnv(length=2), max_steps=5)
    observation, info = env.reset(seed=1, options={"level": 2})
    for _ in range(50):
        observation, info = env.reset(options={"level": 2})
        assert observation[0] == info["step"] < 2
    assert len(env.unwrapped.resets) > 51  # some episodes did end
    assert {options["level"] for _, options in env.unwrapped.resets} == {2}
    assert {seed for seed, _ in env.unwrapped.resets} == {1, None}


@pytest.mark.parametrize("max_steps", [-1, 1.5, True])
def test_random_start_refuses_other_numbers(max_steps):
    with pytest.raises(ValueError, match="max_steps must be a whole number"):
        RandomStart(StepsEnv(), max_steps)


# All of them

WRAPPERS = {
    "FrameHistory": functools.partial(FrameHistory, past_indices=[0, 3], flatten=True),
    "FrameDelta": FrameDelta,
    "RandomStart": functools.partial(RandomStart, max_steps=4),
}


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.filterwarnings("ignore:.*value is .*infinity")
@pytest.mark.parametrize("name", WRAPPERS)
def test_gymnasium_checks_and_a_spec_makes_the_same_once_more(name):
    env = WRAPPERS[name](gymnasium.make("CartPole-v1"))
    check_env(env, skip_render_check=True)
    stored = [env.spec, pickle.loads(pickle.dumps(env.spec)), EnvSpec.from_json(env.spec.to_json())]
    json.loads(env.spec.to_json())
    for spec in stored:
        again = gymnasium.make(spec)
        assert again.observation_space == env.observation_space
        for made in (env, again):
            made.reset(seed=5)
        assert again.step(1)[0].tolist() == env.step(1)[0].tolist()


@pytest.mark.parametrize(("name", "mode"), list(zip(WRAPPERS, AutoresetMode, strict=True)))
def test_in_worker_processes_as_in_one(name, mode):
    """Observations, final ones and infos are those of the same wrappers without processes."""

    def make():
        return WRAPPERS[name](TimeLimit(gymnasium.make("CartPole-v1"), 6))

    expected = gymnasium.vector.SyncVectorEnv([make] * 3, autoreset_mode=mode)
    wrappers = [functools.partial(TimeLimit, max_episode_steps=6), WRAPPERS[name]]
    env = batchgym.make_vec("CartPole-v1", 3, wrappers=wrappers, num_workers=2, autoreset_mode=mode)
    ours, theirs = env.reset(seed=0)[0], expected.reset(seed=0)[0]
    assert ours.tolist() == theirs.tolist()
    for t in range(15):
        actions = np.array([0, 1, t % 2])
        ours, theirs = env.step(actions), expected.step(actions)
        for left, right in zip(ours[:4], theirs[:4], strict=True):
            assert left.tolist() == right.tolist()
        if "final_obs" in theirs[4]:
            for i in np.flatnonzero(theirs[4]["_final_obs"]):
                assert ours[4]["final_obs"][i].tolist() == theirs[4]["final_obs"][i].tolist()
        done = ours[2] | ours[3]
        if mode == AutoresetMode.DISABLED and done.any():
            for side in (env, expected):
                side.reset(options={"reset_mask": done})
    env.close()
    expected.close()


# Gymnasium's


def test_a_repeat_ends_with_the_episode():
    """Rewards 1 + 2 + 3, then 4 + 5, as the time limit cuts the second repeat."""
    env = RepeatAction(TimeLimit(StepsEnv(), 5), num_repeats=3)
    env.reset()
    assert env.step(7)[1:] == (6.0, False, False, {"step": 3})
    observation, *rest = env.step(8)
    assert (observation.tolist(), *rest) == ([5, 50], 9.0, False, True, {"step": 5})
    assert env.unwrapped.actions[-1] == [7, 7, 7, 8, 8]
    with pytest.raises(ValueError, match="num_repeats"):
        RepeatAction(StepsEnv(), num_repeats=0)


def test_ranges_types_and_limits_are_gymnasiums():
    env = ClipAction(RescaleAction(gymnasium.make("Pendulum-v1"), -1, 1))
    plain = gymnasium.make("Pendulum-v1")
    env.reset(seed=0)
    plain.reset(seed=0)
    # 3 is clipped to 1, which stands for the greatest torque, 2.
    assert env.step(np.array([3.0], np.float32))[0].tolist() == (
        plain.step(np.array([2.0], np.float32))[0].tolist()
    )
    narrow = DtypeObservation(gymnasium.make("CliffWalking-v1"), np.float32)
    assert narrow.reset()[0].dtype == np.float32
