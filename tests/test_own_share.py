"""The owner steps a share of the environments itself: the same story, told by one process less."""

import functools
import gc
import os
import signal
from typing import ClassVar

import gymnasium as gym
import numpy as np
import psutil
import pytest
import stub_envs
from gymnasium.vector import AutoresetMode
from stub_envs import INFO_KINDS, SPACES, CountingEnv, SampleEnv, ScriptedEnv
from sync_oracle import both, run_alike

import batchgym
from batchgym import EnvironmentFailedError, ProcessVectorEnv, WorkerDiedError

ACTIONS = np.zeros(4, np.int64)


def make(*env_fns, num_workers=1, **kwargs):
    fns = [*env_fns, *[CountingEnv] * (4 - len(env_fns))]
    return ProcessVectorEnv(fns, num_workers=num_workers, owner_steps=True, **kwargs)


@pytest.mark.parametrize("mode", AutoresetMode, ids=str)
@pytest.mark.parametrize("infos", INFO_KINDS)
def test_alone_it_does_what_sync_vector_env_does(infos, mode):
    fns = [functools.partial(SampleEnv, SPACES["box"], infos=infos) for _ in range(5)]
    ours, theirs = both(fns, num_workers=0, owner_steps=True, autoreset_mode=mode)
    run_alike(ours, theirs, 150, np.random.default_rng(1), mode)
    ours.close()


@pytest.mark.parametrize("shared_memory", [True, False])
@pytest.mark.parametrize("name", SPACES)
def test_every_space(name, shared_memory):
    fns = [functools.partial(SampleEnv, SPACES[name]) for _ in range(3)]
    ours, theirs = both(fns, num_workers=0, owner_steps=True, shared_memory=shared_memory)
    run_alike(ours, theirs, 25, np.random.default_rng(0), AutoresetMode.NEXT_STEP)
    ours.close()


@pytest.mark.parametrize("mode", AutoresetMode, ids=str)
def test_together_with_a_worker(mode):
    fns = [functools.partial(SampleEnv, SPACES["nested"], infos="mixed") for _ in range(5)]
    ours, theirs = both(fns, num_workers=1, owner_steps=True, autoreset_mode=mode)
    run_alike(ours, theirs, 100, np.random.default_rng(1), mode)
    ours.close()


@pytest.mark.parametrize(
    ("num_envs", "num_workers", "processes"),
    [(4, 0, 0), (4, 1, 1), (4, 2, 2), (2, 7, 1), (1, 1, 0)],
)
def test_the_owner_has_the_first_environments(num_envs, num_workers, processes):
    env = ProcessVectorEnv([CountingEnv] * num_envs, num_workers=num_workers, owner_steps=True)
    assert env.num_workers == len(env.processes) == processes
    pids = [process.pid for process in env.processes]
    assert env.owner_steps
    where = env.get_attr("where")
    assert where[0] == os.getpid()
    assert list(dict.fromkeys(where)) == [os.getpid(), *pids]
    env.close()


def test_by_default_it_takes_the_place_of_a_worker(monkeypatch):
    monkeypatch.setattr("batchgym.options.usable_cores", lambda: 3)
    env = ProcessVectorEnv([CountingEnv] * 8, owner_steps=True)
    assert env.num_workers == 2
    env.close()


def test_not_more_environments_at_a_time_than_allowed():
    env = ProcessVectorEnv([CountingEnv] * 4, max_concurrency=1, owner_steps=True)
    assert env.num_workers == 0
    env.close()


def test_without_the_owner_somebody_has_to_work():
    with pytest.raises(ValueError, match=r"at least 1, got 0.*owner_steps=True"):
        ProcessVectorEnv([CountingEnv], num_workers=0)
    with pytest.raises(ValueError, match="at least 0, got -1"):
        ProcessVectorEnv([CountingEnv], num_workers=-1, owner_steps=True)


def test_first_ready():
    env = make()
    env.reset(seed=0)
    env.send(np.zeros(4, np.int64), np.arange(4))
    ids, observations, *_ = env.recv(4)
    assert sorted(ids) == [0, 1, 2, 3]
    np.testing.assert_array_equal(observations, [[0.0, 1.0]] * 4)
    env.send_reset([0, 3], seed=[7, 8])
    ids, observations, *_ = env.recv(2)
    assert sorted(ids) == [0, 3]
    assert env.np_random_seed[0] == 7
    env.close()


def test_an_exception_is_raised_and_the_others_go_on():
    env = make(functools.partial(ScriptedEnv, "step", stub_envs.raise_custom), *[ScriptedEnv] * 3)
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="ERROR"), pytest.raises(stub_envs.CustomError) as caught:
        env.step(ACTIONS)
    assert "Environment 0 raised this in `step`" in caught.value.__notes__[0]
    env.reset(options={"reset_mask": np.array([True, False, False, False])})
    observations, *_ = env.step(ACTIONS)
    np.testing.assert_array_equal(observations, [[2.0]] * 4)
    env.close()


def test_exit_in_an_environment_does_not_end_the_owner():
    env = make(functools.partial(ScriptedEnv, "step", stub_envs.raise_exit), *[ScriptedEnv] * 3)
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="ERROR"), pytest.raises(EnvironmentFailedError):
        env.step(ACTIONS)
    env.close()


@pytest.fixture
def closing_env():
    """A class of environments; its attribute `closed` has those that were closed."""

    class ClosingEnv(CountingEnv):
        closed: ClassVar = []

        def close(self):
            self.closed.append(self)

    return ClosingEnv


def interrupt(env):
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.filterwarnings("ignore:.*(ERROR|WARN)")
@pytest.mark.parametrize("num_workers", [0, 1])
@pytest.mark.parametrize("where", ["step", "reset"])
def test_ctrl_c_in_an_environment(where, num_workers):
    first = functools.partial(ScriptedEnv, where, interrupt)
    env = make(first, *[ScriptedEnv] * 3, num_workers=num_workers)
    if where == "step":
        env.reset(seed=0)
    with pytest.raises(KeyboardInterrupt):
        env.step(ACTIONS) if where == "step" else env.reset(seed=0)
    # As after any Ctrl-C the call is still pending; its end is that these are in no known state.
    with pytest.raises(EnvironmentFailedError, match="KeyboardInterrupt"):
        env.step_wait() if where == "step" else env.reset_wait()
    with pytest.raises(EnvironmentFailedError, match="Environments"):
        env.step(ACTIONS)
    env.close()


@pytest.mark.filterwarnings("ignore:.*(ERROR|WARN)")
@pytest.mark.parametrize("num_workers", [0, 1])
def test_a_failure_before_ctrl_c_is_not_told_in_a_later_step(num_workers):
    fails, stops = (
        functools.partial(ScriptedEnv, "step", what) for what in (stub_envs.raise_custom, interrupt)
    )
    env = make(fails, stops, *[ScriptedEnv] * 2, num_workers=num_workers)
    env.reset(seed=0)
    with pytest.raises(KeyboardInterrupt):
        env.step(ACTIONS)
    with pytest.raises(EnvironmentFailedError, match="KeyboardInterrupt"):
        env.step_wait()
    env.reset(seed=0)
    np.testing.assert_array_equal(env.step(ACTIONS)[1], [1.0] * 4)
    env.close()


@pytest.mark.filterwarnings("ignore:.*(ERROR|WARN)")
def test_ctrl_c_among_environments_sent_one_by_one():
    env = make(ScriptedEnv, functools.partial(ScriptedEnv, "step", interrupt), *[ScriptedEnv] * 2)
    env.reset(seed=0)
    env.send(ACTIONS, np.arange(4))
    with pytest.raises(KeyboardInterrupt):
        env.recv(4)
    with pytest.raises(EnvironmentFailedError, match="KeyboardInterrupt"):
        env.recv(1)
    ids = env.recv(3)[0]
    assert sorted(ids) == [0, 2, 3]
    env.close()


@pytest.mark.filterwarnings("ignore:.*(ERROR|WARN)")
def test_a_workers_death_is_told():
    env = make(*[ScriptedEnv] * 3, functools.partial(ScriptedEnv, "step", stub_envs.kill))
    env.reset(seed=0)
    with pytest.raises(WorkerDiedError, match="environments 2 to 3"):
        env.step(ACTIONS)
    env.close()


def test_close_closes_the_environments_and_leaves_nothing(closing_env):
    def cycle():
        env = make(*[closing_env] * 4, num_workers=0)
        env.reset(seed=0)
        env.step(ACTIONS)
        env.close()

    cycle()
    gc.collect()
    before = psutil.Process().num_fds()
    gc.disable()
    try:
        for _ in range(5):
            cycle()
        assert psutil.Process().num_fds() == before
    finally:
        gc.enable()
    assert len(closing_env.closed) == 24
    assert len(set(map(id, closing_env.closed))) == 24


@pytest.mark.filterwarnings("ignore:.*WARN")
@pytest.mark.parametrize("terminate", [True, False])
def test_close_ends_a_pending_step_unless_it_has_no_time(closing_env, monkeypatch, terminate):
    steps, step = [], CountingEnv.step
    monkeypatch.setattr(closing_env, "step", lambda env, a: (steps.append(a), step(env, a))[1])
    env = make(*[closing_env] * 4, num_workers=0)
    env.reset(seed=0)
    env.step_async(ACTIONS)
    env.close(terminate=terminate)
    assert len(steps) == (0 if terminate else 4)
    assert len(closing_env.closed) == 4


def test_dropped_without_close(closing_env):
    env = make(*[closing_env] * 4, num_workers=0)
    del env
    gc.collect()
    assert len(closing_env.closed) == 4


def test_an_environment_that_cannot_be_made_closes_the_others(closing_env):
    def fails():
        raise stub_envs.CustomError("of step", 42)

    with pytest.raises(stub_envs.CustomError):
        make(closing_env, closing_env, closing_env, fails, num_workers=0)
    assert len(closing_env.closed) == 3


def test_a_fork_of_the_owner_does_not_close_its_environments(tmp_path):
    class Closing(CountingEnv):
        def close(self):
            (tmp_path / str(os.getpid())).touch()

    env = make(*[Closing] * 4, num_workers=0)
    env.reset(seed=0)
    child = os.fork()
    if child == 0:
        env._engine.pool.shut_down(0.0)
        os._exit(0)
    os.waitpid(child, 0)
    assert not list(tmp_path.iterdir())
    env.close()
    assert [path.name for path in tmp_path.iterdir()] == [str(os.getpid())]


@pytest.mark.parametrize("owner_steps", [True, False])
def test_one_object_for_two_environments_is_refused(owner_steps):
    one = CountingEnv()
    with pytest.raises(ValueError, match=r"`env_fns\[1\]` and `env_fns\[0\]` return the same"):
        ProcessVectorEnv(
            [lambda: one] * 3, num_workers=1 - int(owner_steps), owner_steps=owner_steps
        )


class Wrapper(gym.Wrapper):
    pass


@pytest.mark.parametrize(
    ("env_id", "kwargs", "owner_steps"),
    [
        ("CartPole-v1", {}, True),
        ("CartPole-v1", {"num_workers": 0}, True),
        ("CartPole-v1", {"num_workers": 1}, False),
        ("CartPole-v1", {"wrappers": [Wrapper]}, False),
        ("Own-v0", {}, False),
        ("Own-v0", {"num_workers": 0}, True),
    ],
)
def test_none_says_yes_where_nothing_speaks_against_it(env_id, kwargs, owner_steps):
    gym.register("Own-v0", CountingEnv)
    try:
        env = batchgym.make_vec(env_id, 2, owner_steps=None, **kwargs)
        assert env.owner_steps is owner_steps
        env.close()
    finally:
        del gym.registry["Own-v0"]


def test_by_default_all_environments_are_in_workers():
    env = batchgym.make_vec("CartPole-v1", 2)
    assert not env.owner_steps
    assert len(env.processes) == env.num_workers > 0
    env.close()
