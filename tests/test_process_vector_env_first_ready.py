"""`send`, `send_reset` and `recv`: each environment at its own pace."""

import functools
import multiprocessing

import numpy as np
import pytest
import stub_envs
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stub_envs import SPACES, CountingEnv, SampleEnv, ScriptedEnv, UnevenEnv

from batchgym import (
    EnvironmentFailedError,
    EnvironmentPendingError,
    NothingPendingError,
    ProcessVectorEnv,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*(ERROR|WARN)")


@pytest.fixture
def env():
    env = ProcessVectorEnv([UnevenEnv] * 4, num_workers=2)
    env.reset()
    yield env
    env.close()


@pytest.mark.parametrize("repeat", range(5))
def test_readiness_is_per_environment(env, repeat):
    # Environments 0 and 1 share a worker; 1 takes long, and 0 is not held up by it.
    env.send(np.array([0, 40]), [0, 1])
    ids, observations, rewards, terminations, truncations, infos = env.recv()
    assert ids.tolist() == [0]
    assert observations.tolist() == [[1, 0]]
    assert rewards.tolist() == [0]
    assert (terminations.tolist(), truncations.tolist(), infos) == ([False], [False], {})
    env.send(np.array([0, 0]), [2, 3])
    ids, *_ = env.recv(min_envs=2)
    assert sorted(ids.tolist()) == [2, 3]
    ids, observations, rewards, *_ = env.recv()
    assert (ids.tolist(), observations.tolist(), rewards.tolist()) == ([1], [[1, 40]], [40])


def test_rows_are_in_the_order_of_the_indices(env):
    env.send(np.array([3, 0, 1, 2]), [3, 0, 1, 2])
    ids, observations, rewards, *_ = env.recv(min_envs=4)
    assert sorted(ids.tolist()) == [0, 1, 2, 3]
    assert rewards.tolist() == [float(i) for i in ids]
    assert observations[:, 1].tolist() == ids.tolist()


def test_reset_of_some(env):
    env.send(np.array([0, 0]), [1, 3])
    env.recv(min_envs=2)
    env.send_reset([3, 1], seed=10)
    ids, observations, rewards, terminations, truncations, infos = env.recv(min_envs=2)
    assert infos["seed"].tolist() == [10 + i for i in ids]
    assert observations.tolist() == [[0, 0], [0, 0]]
    assert rewards.tolist() == [0, 0]
    assert not terminations.any()
    assert not truncations.any()
    env.send_reset([0, 2], seed=[7, None])
    ids, *_, infos = env.recv(min_envs=2)
    assert dict(zip(ids.tolist(), infos["seed"].tolist(), strict=True)) == {0: 7, 2: -1}


def test_misuse(env):
    with pytest.raises(NothingPendingError, match="no environment is at work"):
        env.recv()
    env.send([0], [2])
    with pytest.raises(EnvironmentPendingError, match=r"Environments \[2\] were sent something"):
        env.send([0], [2])
    with pytest.raises(EnvironmentPendingError):
        env.send_reset([2])
    with pytest.raises(NothingPendingError, match=r"wait for 2 environments, but only \[2\] are"):
        env.recv(min_envs=2)
    with pytest.raises(ValueError, match="`min_envs` must be at least 1"):
        env.recv(min_envs=0)
    for use in (env.reset, lambda: env.step([0] * 4), lambda: env.get_attr("steps")):
        with pytest.raises(AlreadyPendingCallError, match="call `recv` first"):
            use()
    env.recv()
    with pytest.raises(EnvironmentPendingError, match="names an environment twice"):
        env.send([0, 0], [1, 1])
    with pytest.raises(ValueError, match="must lie between 0 and 3"):
        env.send([0], [4])
    with pytest.raises(ValueError, match="is empty"):
        env.send([], [])
    with pytest.raises(TypeError, match="must be a sequence of integers"):
        env.send([0], [0.5])
    with pytest.raises(ValueError, match="Got 1 actions for 2 environments"):
        env.send([0], [0, 1])
    env.step_async([0] * 4)
    for use in (lambda: env.send([0], [0]), lambda: env.send_reset([0]), env.recv):
        with pytest.raises(AlreadyPendingCallError, match="pending call to `step`"):
            use()
    env.step_wait()
    assert issubclass(EnvironmentPendingError, AlreadyPendingCallError)
    assert issubclass(NothingPendingError, NoAsyncCallError)


def test_timeout_loses_nothing(env):
    env.send([0, 50], [0, 2])
    with pytest.raises(multiprocessing.TimeoutError, match="2 were asked for"):
        env.recv(min_envs=2, timeout=0.1)
    ids, *_ = env.recv(min_envs=2)
    assert sorted(ids.tolist()) == [0, 2]


def test_step_and_first_ready_take_turns(env):
    env.step([0] * 4)
    env.send([0], [1])
    env.recv()
    observations, *_ = env.step([0] * 4)
    assert observations[:, 0].tolist() == [2, 3, 2, 2]


def test_failure_leaves_the_others():
    fns = [ScriptedEnv, functools.partial(ScriptedEnv, "step", stub_envs.raise_custom)]
    env = ProcessVectorEnv(fns, num_workers=1)
    env.reset()
    env.send([0, 0], [0, 1])
    with pytest.raises(stub_envs.CustomError):
        env.recv(min_envs=2)
    ids, observations, *_ = env.recv()
    assert (ids.tolist(), observations.tolist()) == ([0], [[1.0]])
    with pytest.raises(EnvironmentFailedError):
        env.send([0], [1])
    env.send_reset([1])
    env.recv()
    env.send([0], [1])
    assert env.recv()[1].tolist() == [[2.0]]
    env.close()


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=str)
@pytest.mark.parametrize(("space", "infos"), [("box", "mixed"), ("partly text", "sometimes")])
def test_each_environment_goes_through_the_same_as_with_step(mode, space, infos):
    end = 0.0 if mode is AutoresetMode.DISABLED else 0.2  # there, SyncVectorEnv refuses to go on
    fns = [functools.partial(SampleEnv, SPACES[space], infos=infos, end=end)] * 3
    free = ProcessVectorEnv(fns, num_workers=2, autoreset_mode=mode)
    alone = [SyncVectorEnv([fn], autoreset_mode=mode) for fn in fns]
    free.send_reset([0, 1, 2], seed=4)
    rng, steps, step_rest = np.random.default_rng(0), [0] * 3, {}
    expected = [one.reset(seed=4 + i)[0] for i, one in enumerate(alone)]
    while min(steps) < 40:
        ids, observations, *rest, batched_infos = free.recv(rng.integers(1, 1 + _busy(free)))
        for row, index in enumerate(ids):
            for ours, theirs in _leaves(observations, expected[index]):
                np.testing.assert_array_equal(ours[row], theirs[0])
            if steps[index]:
                for ours, theirs in zip(rest, step_rest[index][:3], strict=True):
                    assert ours[row] == theirs[0]
                keys = {k for k in batched_infos if k[0] != "_" and batched_infos[f"_{k}"][row]}
                assert keys == {k for k in step_rest[index][3] if k[0] != "_"}
        for index in ids:
            steps[index] += 1
        free.send(np.zeros(len(ids), np.int64), ids)
        for index in ids:
            expected[index], *outcome = alone[index].step(np.zeros(1, np.int64))
            step_rest[index] = outcome
    free.close()


def _busy(env):
    return env._first_ready.pending


def _leaves(ours, theirs):
    if isinstance(ours, dict):
        return [pair for key in ours for pair in _leaves(ours[key], theirs[key])]
    return [(ours, theirs)]


def test_actions_that_cannot_be_shared():
    fns = [functools.partial(SampleEnv, SPACES["box"], stub_envs.Text(4))] * 3
    env = ProcessVectorEnv(fns, num_workers=2)
    env.reset()
    env.send(("a", "b"), [2, 0])
    env.recv(min_envs=2)
    assert env.get_attr("last_action") == ("b", None, "a")
    env.close()


def test_next_step_reset_is_per_environment():
    env = ProcessVectorEnv([functools.partial(CountingEnv, 1)] * 2, num_workers=1)
    env.reset()
    env.send([0], [1])
    assert env.recv()[3].tolist() == [True]
    env.send([0], [1])
    _, observations, rewards, *_ = env.recv()
    assert (observations.tolist(), rewards.tolist()) == ([[1, 0]], [0])
    env.close()
