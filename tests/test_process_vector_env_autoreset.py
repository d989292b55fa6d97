"""The three autoreset modes and `reset_mask`, number by number."""

import functools

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from stub_envs import CountingEnv

from batchgym import ProcessVectorEnv

ZEROS = np.zeros(2, np.int64)
SHARED = pytest.mark.parametrize("shared_memory", [True, False])


def make(mode, shared_memory=True, **kwargs):
    """Environment 0 ends after 2 steps, environment 1 after 3; in two workers."""
    fns = [functools.partial(CountingEnv, length, **kwargs) for length in (2, 3)]
    env = ProcessVectorEnv(fns, autoreset_mode=mode, shared_memory=shared_memory, num_workers=2)
    env.reset()
    return env


def step(env):
    observations, rewards, terminations, truncations, infos = env.step(ZEROS)
    return observations.tolist(), rewards.tolist(), (terminations | truncations).tolist(), infos


def mask(*indices):
    return {"reset_mask": np.isin(np.arange(2), indices)}


@SHARED
def test_next_step(shared_memory):
    env = make(AutoresetMode.NEXT_STEP, shared_memory)
    assert step(env)[:3] == ([[0, 1], [0, 1]], [1, 1], [False, False])
    observations, rewards, done, infos = step(env)
    assert (observations, rewards, done) == ([[0, 2], [0, 2]], [2, 2], [True, False])
    assert infos["count"].tolist() == [2, 2]
    observations, rewards, done, infos = step(env)
    assert (observations, rewards, done) == ([[1, 0], [0, 3]], [0, 3], [False, True])
    assert infos["_began"].tolist() == [True, False]
    assert infos["_count"].tolist() == [False, True]
    assert infos["count"].tolist() == [0, 3]
    assert infos["began"].tolist() == [1, 0]
    assert step(env)[:3] == ([[1, 1], [1, 0]], [1, 0], [False, False])
    env.close()


@SHARED
def test_same_step(shared_memory):
    env = make(AutoresetMode.SAME_STEP, shared_memory)
    infos = step(env)[3]
    assert "final_obs" not in infos
    observations, rewards, done, infos = step(env)
    assert (observations, rewards, done) == ([[1, 0], [0, 2]], [2, 2], [True, False])
    assert infos["_final_obs"].tolist() == [True, False]
    assert infos["final_obs"][0].tolist() == [0, 2]
    assert infos["final_obs"][1] is None
    assert infos["final_info"]["count"].tolist() == [2, 0]
    assert infos["_count"].tolist() == [False, True]
    assert infos["began"].tolist() == [1, 0]
    assert step(env)[:3] == ([[1, 1], [1, 0]], [1, 3], [False, True])
    env.close()


@SHARED
def test_disabled(shared_memory):
    env = make(AutoresetMode.DISABLED, shared_memory)
    step(env)
    assert step(env)[:3] == ([[0, 2], [0, 2]], [2, 2], [True, False])
    # As in AsyncVectorEnv, stepping on is the caller's affair.
    assert step(env)[:3] == ([[0, 3], [0, 3]], [3, 3], [True, True])
    observations, infos = env.reset(options=mask(0))
    assert observations.tolist() == [[1, 0], [0, 3]]
    assert infos["_began"].tolist() == [True, False]
    env.close()


def test_truncation_resets_as_termination_does():
    env = make(AutoresetMode.NEXT_STEP, truncates=True)
    step(env)
    _, _, terminations, truncations, _ = env.step(ZEROS)
    assert (terminations.tolist(), truncations.tolist()) == ([False, False], [True, False])
    assert step(env)[0] == [[1, 0], [0, 3]]
    env.close()


@SHARED
def test_manual_reset_clears_a_pending_one(shared_memory):
    env = make(AutoresetMode.NEXT_STEP, shared_memory)
    step(env)
    assert step(env)[2] == [True, False]
    assert env.reset()[0].tolist() == [[1, 0], [1, 0]]
    assert step(env)[0] == [[1, 1], [1, 1]]
    env.close()


@SHARED
def test_masked_reset_keeps_the_pending_ones_of_others(shared_memory):
    env = make(AutoresetMode.NEXT_STEP, shared_memory)
    step(env)
    assert step(env)[2] == [True, False]
    observations, infos = env.reset(options=mask(1))
    assert observations.tolist() == [[0, 2], [1, 0]]
    assert infos["_began"].tolist() == [False, True]
    assert step(env)[0] == [[1, 0], [1, 1]]
    env.close()


@SHARED
@pytest.mark.parametrize("mode", list(AutoresetMode), ids=str)
def test_masked_reset_leaves_others_alone(mode, shared_memory):
    env = make(mode, shared_memory)
    step(env)
    assert env.reset(seed=[5, 6], options=mask(0))[0].tolist() == [[1, 0], [0, 1]]
    assert env.get_attr("last_seed") == (5, None)
    assert step(env)[:3] == ([[1, 1], [0, 2]], [1, 2], [False, False])
    env.close()
