"""Evaluation counts whole episodes, raw rewards and fair shares."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import NormalizeReward, RecordEpisodeStatistics
from ppo_envs import CountingEnv, CueEnv

import batchppo
from batchppo import learner
from batchppo.evaluation import evaluate_policy


@pytest.fixture(autouse=True)
def _plain_graph(monkeypatch):
    """Compiling takes seconds and does not matter here."""
    monkeypatch.setattr(learner, "JIT_COMPILE", False)


class Zero:
    """Always takes action 0 and remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        self.asked.append((state, episode_start.tolist(), deterministic))
        return np.zeros(len(observation), np.int64), len(self.asked)


class Length(gymnasium.Env):
    """Every episode lasts `length` steps of reward 1."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, length):
        self.length = length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return np.zeros(1, np.float32), {"seed": seed}

    def step(self, action):
        self.count += 1
        return np.zeros(1, np.float32), 1.0, self.count == self.length, False, {}


def lengths_env(*lengths, mode=AutoresetMode.NEXT_STEP):
    return SyncVectorEnv([lambda n=n: Length(n) for n in lengths], autoreset_mode=mode)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_short_episodes_are_not_favoured(mode):
    env = lengths_env(1, 50, mode=mode)
    returns, lengths = evaluate_policy(Zero(), env, 5, return_episode_rewards=True)
    assert returns == [1.0] * 2 + [50.0] * 3
    assert lengths == [1] * 2 + [50] * 3
    assert evaluate_policy(Zero(), env, 4) == (25.5, 24.5)


def test_fewer_episodes_than_environments():
    assert evaluate_policy(Zero(), lengths_env(1, 2, 3), 1) == (3.0, 0.0)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_every_mode_counts_the_same(mode):
    env = SyncVectorEnv([lambda: CountingEnv(2)], autoreset_mode=mode)
    returns, lengths = evaluate_policy(Zero(), env, 4, return_episode_rewards=True)
    assert lengths == [4, 5, 2, 3]
    expected = [sum(200 + 10 * k + t for t in range(1, n + 1)) for k, n in enumerate(lengths)]
    assert returns == expected


def test_a_single_environment():
    assert evaluate_policy(Zero(), Length(7), 3) == (7.0, 0.0)


def test_state_and_episode_starts_are_carried():
    model = Zero()
    evaluate_policy(model, lengths_env(2, mode=AutoresetMode.SAME_STEP), 2, deterministic=False)
    assert [state for state, _, _ in model.asked] == [None, 1, 2, 3]
    assert [starts for _, starts, _ in model.asked] == [[True], [False], [True], [False]]
    assert not any(deterministic for _, _, deterministic in model.asked)


def test_statistics_do_not_move_during_evaluation():
    agent = batchppo.BatchPPO("MlpPolicy", CountingEnv(), n_steps=8, seed=0)
    agent.learn(16)
    before = agent._state()
    evaluate_policy(agent, CountingEnv(), 3)
    after = agent._state()
    for group in ("observation_moments", "reward_moments", "weights"):
        for name, array in getattr(before, group).items():
            assert np.array_equal(array, getattr(after, group)[name])
    assert before.random == after.random


def test_a_wrapper_that_changes_rewards_is_warned_of():
    env = NormalizeReward(lengths_env(3))
    with pytest.warns(UserWarning, match="NormalizeReward"):
        evaluate_policy(Zero(), env, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate_policy(Zero(), env, 1, warn=False)


def test_raw_returns_come_from_statistics_inside_of_a_reward_wrapper():
    env = NormalizeReward(RecordEpisodeStatistics(lengths_env(3)))
    assert evaluate_policy(Zero(), env, 2, warn=False) == (3.0, 0.0)


def test_seeded_evaluations_repeat():
    class Cue(Zero):
        def predict(self, observation, *args, **kwargs):
            return np.asarray(observation) % 3 - 1, None

    env = SyncVectorEnv([CueEnv] * 3)
    runs = [evaluate_policy(Cue(), env, 6, seed=1, return_episode_rewards=True) for _ in range(2)]
    assert runs[0] == runs[1]


def test_threshold_callback_and_counts():
    steps = []
    mean, _ = evaluate_policy(
        Zero(), Length(2), 2, callback=lambda local, _: steps.append(local["step"].rewards[0])
    )
    assert mean == 2.0
    assert steps == [1.0] * 4
    with pytest.raises(ValueError, match=r"mean return 2.00 is not above the threshold 3"):
        evaluate_policy(Zero(), Length(2), 1, reward_threshold=3)
    with pytest.raises(ValueError, match="n_eval_episodes must be at least 1, got 0"):
        evaluate_policy(Zero(), Length(2), 0)
