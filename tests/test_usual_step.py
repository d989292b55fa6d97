"""The short way that most steps take: when it is taken, and that it tells the same."""

import os
import signal

import numpy as np
import pytest
from stub_envs import CountingEnv

from batchgym import ProcessVectorEnv, WorkerDiedError
from batchgym.engine import Engine

ACTIONS = np.zeros(4, np.int64)


@pytest.fixture
def env():
    env = ProcessVectorEnv([CountingEnv] * 4, num_workers=2)
    yield env
    env.close()


@pytest.fixture
def long_ways(monkeypatch):
    """Counts the steps that the engine has sent."""
    steps = []
    send_step = Engine.send_step

    def counted(engine, actions):
        steps.append(actions)
        send_step(engine, actions)

    monkeypatch.setattr(Engine, "send_step", counted)
    return steps


def test_steps_after_a_reset_take_the_short_way(env, long_ways):
    env.reset(seed=0)
    for _ in range(5):
        env.step(ACTIONS)
    assert not long_ways


@pytest.mark.parametrize(
    ("unusual", "expected"),
    [
        (lambda env: env.step([0] * 4), 1),
        # An array of another dtype changes what is usual, and so does the next one.
        (lambda env: env.step(ACTIONS.astype(np.int32)), 2),
        (lambda env: env.recv(env.send(ACTIONS, range(4)) or 4), 1),
    ],
    ids=["list", "other dtype", "first-ready"],
)
def test_after_something_unusual_the_short_way_is_taken_again(env, long_ways, unusual, expected):
    env.reset(seed=0)
    unusual(env)
    for _ in range(4):
        env.step(ACTIONS)
    assert len(long_ways) == expected


@pytest.mark.parametrize("worker", [0, 1])
def test_interrupted_wait_goes_on_where_it_was(env, worker, monkeypatch):
    env.reset(seed=0)
    env.step(ACTIONS)  # after which the infos need no message
    env.step_async(ACTIONS)
    process = env._engine.pool.workers[worker]

    def interrupt():
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(process, "receive_done", interrupt)
    with pytest.raises(KeyboardInterrupt):
        env.step_wait()
    np.testing.assert_array_equal(env.step_wait()[1], np.full(4, 2.0))
    np.testing.assert_array_equal(env.step(ACTIONS)[1], np.full(4, 3.0))


def test_interrupted_send_leaves_no_worker_behind(env, monkeypatch):
    env.reset(seed=0)
    first = env._engine.pool.workers[0]
    request = first.request

    def interrupted(frame):
        request(frame)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(first, "request", interrupted)
    with pytest.raises(KeyboardInterrupt):
        env.step_async(ACTIONS)
    np.testing.assert_array_equal(env.step_wait()[1], np.ones(4))
    np.testing.assert_array_equal(env.step(ACTIONS)[1], np.full(4, 2.0))


@pytest.mark.parametrize("repeat", range(5))
def test_a_death_is_found_by_the_long_way(env, repeat):
    env.reset(seed=0)
    env.step(ACTIONS)
    os.kill(env.processes[1].pid, signal.SIGKILL)
    env.processes[1].wait()
    for _ in range(2):
        with pytest.raises(WorkerDiedError, match="Worker 1 .* SIGKILL"):
            env.step(ACTIONS)
