"""`restart_workers`: dead workers are replaced, and nobody mistakes the gap for a transition."""

import functools
import signal

import numpy as np
import pytest
import stub_envs
from gymnasium.vector import AutoresetMode
from stub_envs import CountingEnv, SampleEnv, ScriptedEnv

from batchgym import EnvironmentFailedError, ProcessVectorEnv, WorkerDiedError

pytestmark = pytest.mark.filterwarnings("ignore:.*(ERROR|WARN)")
repeated = pytest.mark.parametrize("repeat", range(5))
ZEROS = np.zeros(3, np.int64)


def make(mode=AutoresetMode.NEXT_STEP, restarts=1, **kwargs):
    """Environment 0 in worker 0; environments 1 and 2 in worker 1."""
    env = ProcessVectorEnv(
        [functools.partial(CountingEnv, 100)] * 3,
        num_workers=2,
        autoreset_mode=mode,
        restart_workers=restarts,
        **kwargs,
    )
    env.reset(seed=5)
    env.step(ZEROS)
    return env


def kill(env, worker=1):
    process = env.processes[worker]
    process.send_signal(signal.SIGKILL)
    process.wait()


def check_gap(env, result):
    """Environments 1 and 2 were restarted, environment 0 made its second step."""
    observations, rewards, terminations, truncations, infos = result
    assert observations.tolist() == [[0, 2], [0, 0], [0, 0]]
    assert rewards.tolist() == [2, 0, 0]
    assert terminations.tolist() == [False] * 3
    assert truncations.tolist() == [False, True, True]
    assert infos["worker_restarted"].tolist() == [False, True, True]
    assert infos["_worker_restarted"].tolist() == [False, True, True]
    return infos


@repeated
def test_next_step(repeat):
    env = make(AutoresetMode.NEXT_STEP)
    kill(env)
    check_gap(env, env.step(ZEROS))
    # As after every truncated row: the next one is a reset.
    observations, rewards, _, truncations, infos = env.step(ZEROS)
    assert observations.tolist() == [[0, 3], [1, 0], [1, 0]]
    assert (rewards.tolist(), truncations.tolist()) == ([3, 0, 0], [False] * 3)
    assert "worker_restarted" not in infos
    assert env.step(ZEROS)[0].tolist() == [[0, 4], [1, 1], [1, 1]]
    env.close()


@repeated
def test_same_step(repeat):
    env = make(AutoresetMode.SAME_STEP)
    kill(env)
    infos = check_gap(env, env.step(ZEROS))
    assert infos["_final_obs"].tolist() == [False, True, True]
    assert infos["final_obs"][2].tolist() == [0, 0]
    assert infos["_final_info"].tolist() == [False, True, True]
    assert env.step(ZEROS)[0].tolist() == [[0, 3], [0, 1], [0, 1]]
    env.close()


@repeated
def test_disabled(repeat):
    env = make(AutoresetMode.DISABLED)
    kill(env)
    check_gap(env, env.step(ZEROS))
    observations, _ = env.reset(options={"reset_mask": np.array([False, True, True])})
    assert observations.tolist() == [[0, 2], [1, 0], [1, 0]]
    env.close()


def test_without_shared_memory():
    env = make(AutoresetMode.SAME_STEP, shared_memory=False)
    kill(env)
    infos = check_gap(env, env.step(ZEROS))
    assert infos["final_obs"][1].tolist() == [0, 0]
    env.close()


def test_death_during_the_step():
    fns = [ScriptedEnv, functools.partial(ScriptedEnv, "step", stub_envs.exit_at_once, at_step=2)]
    env = ProcessVectorEnv(fns, num_workers=2, restart_workers=5)
    env.reset()
    outcomes = [env.step(ZEROS[:2]) for _ in range(5)]
    assert [o[0][1, 0] for o in outcomes] == [1, 0, 0, 1, 0]
    assert [o[0][0, 0] for o in outcomes] == [1, 2, 3, 4, 5]
    assert [o[3].tolist() for o in outcomes] == [
        [False, False],
        [False, True],
        [False, False],
        [False, False],
        [False, True],
    ]
    env.close()


def test_at_most_so_many_times():
    env = make(restarts=2)
    for _ in range(2):
        kill(env)
        env.step(ZEROS)
    kill(env)
    for _ in range(2):
        with pytest.raises(WorkerDiedError, match="Worker 1"):
            env.step(ZEROS)
    env.close()


def test_each_worker_has_its_own_number():
    env = make(restarts=1)
    kill(env, 0)
    env.step(ZEROS)
    kill(env, 1)
    env.step(ZEROS)
    env.close()


def test_seeds_are_derived_from_the_last_ones():
    def seeds(seed):
        env = make()
        env.reset(seed=seed)
        kill(env)
        env.step(ZEROS)
        found = env.get_attr("last_seed")
        env.close()
        return found[1:]

    first = seeds(5)
    assert first == seeds(5)
    assert first != seeds(6)
    assert len(set(first)) == 2
    assert None not in first


def test_death_in_reset():
    env = make()
    kill(env)
    observations, _ = env.reset(seed=3)
    assert observations.tolist() == [[1, 0], [1, 0], [1, 0]] or observations.tolist() == [
        [1, 0],
        [0, 0],
        [0, 0],
    ]
    _, _, _, truncations, _ = env.step(ZEROS)
    assert not truncations.any()
    env.close()


def test_death_in_a_call_loses_its_result():
    env = make()
    kill(env)
    with pytest.raises(WorkerDiedError):
        env.get_attr("length")
    check_gap(env, env.step(ZEROS))
    assert env.get_attr("length") == (100,) * 3
    env.close()


def test_infos_go_on_through_shared_memory():
    fns = [functools.partial(SampleEnv, stub_envs.SPACES["box"], infos="numeric", end=0)] * 3
    env = ProcessVectorEnv(fns, num_workers=2, restart_workers=1)
    env.reset(seed=0)
    for _ in range(3):
        env.step(ZEROS)
    kill(env)
    infos = env.step(ZEROS)[4]
    assert infos["_number"].all()
    for _ in range(3):
        infos = env.step(ZEROS)[4]
        assert infos["_array"].all()
        assert infos["array"].shape == (3, 2, 3)
    env.close()


@repeated
def test_first_ready(repeat):
    env = make()
    env.send([0, 0], [0, 1])
    kill(env)
    got = {}
    while len(got) < 2:
        ids, observations, rewards, _, truncations, infos = env.recv()
        for row, index in enumerate(ids.tolist()):
            marked = bool(infos.get("worker_restarted", np.zeros(9))[row])
            got[index] = (observations[row].tolist(), rewards[row], truncations[row], marked)
    assert got[0] == ([0, 2], 2, False, False)
    # Environment 1 may have finished before the signal came.
    assert got[1] in [([0, 0], 0, True, True), ([0, 2], 2, False, False)]
    env.close()


def test_first_ready_tells_the_idle_ones_later():
    env = make()
    kill(env)
    env.send([0], [1])
    assert env.recv()[4].tolist() == [True]
    with pytest.raises(EnvironmentFailedError, match=r"worker of environments \[2\] was restarted"):
        env.step(ZEROS)
    env.send([0], [2])
    ids, observations, rewards, _, truncations, infos = env.recv()
    assert (ids.tolist(), observations.tolist()) == ([2], [[0, 0]])
    assert (rewards.tolist(), truncations.tolist()) == ([0], [True])
    assert infos["worker_restarted"].tolist() == [True]
    assert env.step(ZEROS)[0].tolist() == [[0, 2], [1, 0], [1, 0]]
    env.close()


def test_first_ready_reset_is_done_again():
    env = make()
    kill(env)
    env.send_reset([1], seed=8)
    _, observations, _, _, truncations, _ = env.recv()
    assert (observations.tolist(), truncations.tolist()) == ([[1, 0]], [False])
    assert env.get_attr("last_seed")[1] == 8 + 1
    env.send([0], [1])
    assert env.recv()[1].tolist() == [[1, 1]]
    env.close()
