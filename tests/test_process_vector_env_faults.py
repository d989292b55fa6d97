"""Environments that raise, die, hang, print or return nonsense; and callers that do."""

import functools
import multiprocessing
import os
import signal
import time

import numpy as np
import pytest
import stub_envs
from gymnasium.error import ClosedEnvironmentError
from gymnasium.vector import AutoresetMode
from stub_envs import CountingEnv, KeepingEnv, ReusingEnv, ScriptedEnv

from batchgym import EnvironmentFailedError, ProcessVectorEnv, WorkerDiedError, WorkerStartError
from batchgym.errors import RemoteTracebackError

# Gymnasium logs with warnings, which the suite turns into errors.
pytestmark = pytest.mark.filterwarnings("ignore:.*(ERROR|WARN)")
repeated = pytest.mark.parametrize("repeat", range(5))
ZEROS = np.zeros(3, np.int64)


def make(where, what, bad=1, num_envs=3, num_workers=2, **kwargs):
    """Three environments in two workers (0; 1 and 2), one of which does `what` in `where`."""
    fns = [
        functools.partial(ScriptedEnv, where if i == bad else "never", what)
        for i in range(num_envs)
    ]
    return ProcessVectorEnv(fns, num_workers=num_workers, **kwargs)


def reset_and_step(env):
    env.reset(seed=0)
    env.step(ZEROS)


def assert_gone(env):
    assert all(process.returncode is not None for process in env.processes)


def test_exception_in_constructor():
    with pytest.raises(stub_envs.CustomError, match="of step") as caught:
        make("init", stub_envs.raise_custom)
    assert "Environment 1 raised this in `its env_fn`" in caught.value.__notes__[0]


@pytest.mark.parametrize("where", ["reset", "step"])
def test_exception_is_the_original_with_its_traceback(where):
    env = make(where, stub_envs.raise_custom)
    with pytest.raises(stub_envs.CustomError) as caught:
        reset_and_step(env)
    assert caught.value.args == ("of step", 42)
    assert f"Environment 1 raised this in `{where}`" in caught.value.__notes__[0]
    assert isinstance(caught.value.__cause__, RemoteTracebackError)
    assert "raise CustomError(" in str(caught.value.__cause__)
    env.close()
    assert_gone(env)


def test_failed_environment_must_be_reset_the_others_go_on():
    env = make("step", stub_envs.raise_custom)
    env.reset()
    with pytest.raises(stub_envs.CustomError):
        env.step(ZEROS)
    with pytest.raises(EnvironmentFailedError, match=r"Environments \[1\] raised"):
        env.step(ZEROS)
    env.reset(options={"reset_mask": np.array([False, True, False])})
    observations, *_ = env.step(ZEROS)
    np.testing.assert_array_equal(observations, [[2.0], [2.0], [2.0]])
    env.close()


@pytest.mark.filterwarnings("always::UserWarning")
def test_every_failure_is_reported_and_the_last_is_raised():
    fns = [functools.partial(ScriptedEnv, "step", stub_envs.raise_two_arguments)] * 2
    env = ProcessVectorEnv([*fns, ScriptedEnv], num_workers=2)
    env.reset()
    with (
        pytest.warns(UserWarning, match="ERROR") as warned,
        pytest.raises(stub_envs.TwoArgumentError) as caught,
    ):
        env.step(ZEROS)
    assert len(warned) == 5
    assert "Environment 1 raised" in caught.value.__notes__[0]
    env.close()


def test_two_argument_exception_keeps_its_attributes():
    env = make("step", stub_envs.raise_two_arguments)
    env.reset()
    with pytest.raises(stub_envs.TwoArgumentError, match="this and that") as caught:
        env.step(ZEROS)
    assert (caught.value.left, caught.value.right) == ("this", "that")
    env.close()


def test_os_error_keeps_errno_and_filename():
    env = make("step", stub_envs.raise_os_error)
    env.reset()
    with pytest.raises(FileNotFoundError) as caught:
        env.step(ZEROS)
    assert (caught.value.errno, caught.value.filename) == (2, "model.xml")
    env.close()


@repeated
def test_unpicklable_exception_still_brings_its_traceback(repeat):
    env = make("step", stub_envs.raise_unpicklable)
    env.reset()
    with pytest.raises(
        EnvironmentFailedError, match="Environment 1 raised UnpicklableError: locked"
    ) as caught:
        env.step(ZEROS)
    assert "raise UnpicklableError" in str(caught.value.__cause__)
    env.close()


def test_exception_without_text():
    env = make("step", stub_envs.raise_broken_text)
    env.reset()
    with pytest.raises(stub_envs.BrokenTextError):
        env.step(ZEROS)
    env.close()


def test_system_exit_in_a_worker_does_not_end_the_owner():
    env = make("step", stub_envs.raise_exit)
    env.reset()
    with pytest.raises(EnvironmentFailedError, match="Environment 1 raised SystemExit: 3"):
        env.step(ZEROS)
    env.close()


def test_exception_at_unpickling():
    with pytest.raises(stub_envs.CustomError, match="at unpickling"):
        ProcessVectorEnv([CountingEnv, stub_envs.UnpicklableOnArrival()], num_workers=2)


def test_exception_in_close_is_reported_and_everything_is_closed():
    env = make("close", stub_envs.raise_custom)
    with pytest.warns(UserWarning, match="Environment 1 raised in `close`"):
        env.close()
    assert_gone(env)


def test_unpicklable_env_fn_is_named():
    import threading

    lock = threading.Lock()
    with pytest.raises(TypeError, match=r"env_fns\[1\]"):
        ProcessVectorEnv([CountingEnv, lambda: lock and CountingEnv()], num_workers=2)


@repeated
@pytest.mark.parametrize(
    ("what", "says"),
    [
        (stub_envs.exit_at_once, "exit code 7"),
        (stub_envs.kill, "killed by SIGKILL .*out of memory"),
        (stub_envs.crash, "killed by SIGSEGV .*native code"),
    ],
)
def test_death_in_step(what, says, repeat):
    env = make("step", what, bad=2)
    env.reset()
    with pytest.raises(
        WorkerDiedError, match=rf"Worker 1 \(environments 1 to 2\) died during `step_wait`: {says}"
    ) as caught:
        env.step(ZEROS)
    assert (caught.value.worker, caught.value.env_indices) == (1, range(1, 3))
    with pytest.raises(WorkerDiedError):
        env.step(ZEROS)
    with pytest.raises(WorkerDiedError):
        env.get_attr("steps")
    env.close()
    assert_gone(env)


@pytest.mark.parametrize("where", ["init", "reset", "method"])
def test_death_elsewhere(where):
    with pytest.raises(WorkerDiedError, match="exit code 7"):
        make_reset_and_call(where)


def make_reset_and_call(where):
    env = make(where, stub_envs.exit_at_once)
    try:
        env.reset()
        env.call("method")
    finally:
        env.close()
        assert_gone(env)


@repeated
def test_death_between_calls(repeat):
    env = make("never", None)
    env.reset()
    env.processes[1].send_signal(signal.SIGKILL)
    env.processes[1].wait()
    with pytest.raises(WorkerDiedError, match="Worker 1"):
        env.step(ZEROS)
    env.close()


def test_worker_that_dies_while_a_child_of_its_keeps_the_pipes_open():
    def fork_and_die(env):
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        os._exit(5)

    env = make("step", fork_and_die)
    env.reset()
    with pytest.raises(WorkerDiedError, match="exit code 5"):
        env.step(ZEROS)
    env.close()


@pytest.mark.parametrize(
    "what",
    [
        stub_envs.hang_in_python,
        stub_envs.hang_in_c_without_gil,
        stub_envs.hang_in_c_with_gil,
        stub_envs.hang_stubbornly,
    ],
)
def test_close_returns_whatever_a_worker_does(what):
    env = make("step", what)
    env.reset()
    env.step_async(ZEROS)
    with pytest.raises(multiprocessing.TimeoutError, match="environments 1 to 2"):
        env.step_wait(timeout=0.2)
    with pytest.warns(UserWarning, match="pending call to `step`"):
        env.close(timeout=0.2)
    assert_gone(env)


def test_close_without_timeout_returns_too(monkeypatch):
    monkeypatch.setattr("batchgym.vector_env._CLOSE_SECONDS", 0.2)
    env = make("step", stub_envs.hang_in_c_with_gil)
    env.reset()
    env.step_async(ZEROS)
    env.close()
    assert_gone(env)


def test_close_with_terminate():
    env = make("close", stub_envs.hang_in_python)
    env.close(terminate=True)
    assert_gone(env)


def test_hanging_constructor_meets_the_start_timeout():
    with pytest.raises(WorkerStartError, match=r"within 5.0 seconds .*worker 1"):
        make("init", stub_envs.hang_in_python, start_timeout=5.0)


@repeated
def test_timeout_loses_nothing(repeat):
    env = make("step", lambda env: time.sleep(0.5))
    env.reset()
    env.step_async(ZEROS)
    for _ in range(2):
        with pytest.raises(multiprocessing.TimeoutError, match="still pending"):
            env.step_wait(timeout=0.01)
    observations, rewards, *_ = env.step_wait(timeout=20)
    np.testing.assert_array_equal(observations, [[1.0]] * 3)
    np.testing.assert_array_equal(rewards, [1.0] * 3)
    observations, *_ = env.step(ZEROS)
    np.testing.assert_array_equal(observations, [[2.0]] * 3)
    assert env.get_attr("steps") == (2, 2, 2)
    env.close()


def test_printing_environment(capfd):
    env = make("step", stub_envs.print_line)
    env.reset()
    observations, *_ = env.step(ZEROS)
    np.testing.assert_array_equal(observations, [[1.0]] * 3)
    env.close()
    assert capfd.readouterr().out == "printed by an environment\n"


def test_stdin_is_empty():
    env = make("step", stub_envs.read_stdin)
    env.reset()
    with pytest.raises(EOFError):
        env.step(ZEROS)
    env.close()


@pytest.mark.parametrize(
    ("what", "shape"),
    [(stub_envs.return_wrong_shape, r"\(3,\)"), (stub_envs.return_scalar, r"\(\)")],
)
def test_observation_of_a_wrong_shape(what, shape):
    env = make("step", what)
    env.reset()
    with pytest.raises(
        ValueError, match=rf"Environment 1 returned an observation of shape {shape}.*says \(1,\)"
    ):
        env.step(ZEROS)
    env.close()


def test_observation_of_another_dtype_is_cast():
    env = make("step", stub_envs.return_integers)
    env.reset()
    observations, *_ = env.step(ZEROS)
    assert observations.dtype == np.float64
    np.testing.assert_array_equal(observations, [[1.0], [7.0], [1.0]])
    env.close()


def test_nan_passes_through():
    env = make("step", stub_envs.return_nan)
    env.reset()
    observations, rewards, *_ = env.step(ZEROS)
    np.testing.assert_array_equal(observations, [[1.0], [np.nan], [1.0]])
    np.testing.assert_array_equal(rewards, [1.0, np.nan, 1.0])
    env.close()


@pytest.mark.parametrize("num_workers", [1, 3])
def test_reward_of_one_element_is_a_number(num_workers):
    env = make("step", stub_envs.return_array_reward, num_workers=num_workers)
    env.reset()
    _, rewards, terminations, truncations, _ = env.step(ZEROS)
    np.testing.assert_array_equal(rewards, [1.0, 2.5, 1.0])
    np.testing.assert_array_equal(terminations, [False] * 3)
    np.testing.assert_array_equal(truncations, [False, True, False])
    env.close()


def test_reward_of_two_elements():
    env = make("step", stub_envs.return_two_rewards)
    env.reset()
    with pytest.raises(ValueError, match=r"Environment 1 returned a reward of shape \(2,\)"):
        env.step(ZEROS)
    env.close()


def test_unpicklable_info_names_its_environment():
    env = make("step", stub_envs.return_unpicklable_info, bad=2)
    env.reset()
    with pytest.raises(TypeError, match="pickle") as caught:
        env.step(ZEROS)
    assert "Environment 2" in caught.value.__notes__[0]
    env.close()


@pytest.mark.parametrize(
    ("actions", "error"),
    [
        ([0, 0], ValueError),
        ([0] * 4, ValueError),
        (np.zeros(2, np.int64), ValueError),
        (np.zeros((4, 1)), ValueError),
        ([], ValueError),
        (0, TypeError),
        (np.int64(0), TypeError),
        (np.array(0), TypeError),
        (None, TypeError),
        ("abc", TypeError),
        ({0: 1, 1: 1, 2: 1}, TypeError),
        (["a", "b", "c"], TypeError),
        ([0, None, 0], TypeError),
        (np.array(["a", "b", "c"]), TypeError),
    ],
    ids=repr,
)
def test_wrong_actions_are_refused_before_anything_is_sent(actions, error, shared_env):
    before = shared_env.get_attr("steps")
    with pytest.raises(error, match="expected a batch of 3 elements of Discrete"):
        shared_env.step(actions)
    assert shared_env.get_attr("steps") == before
    observations, *_ = shared_env.step(ZEROS)
    np.testing.assert_array_equal(observations[:, 0], np.array(before) + 1)


@pytest.fixture(scope="module")
def shared_env():
    env = make("never", None)
    env.reset()
    yield env
    env.close()


def test_dictionary_of_actions_that_lacks_a_key():
    space = stub_envs.Dict(a=stub_envs.Discrete(2), b=stub_envs.Discrete(2))
    fns = [functools.partial(stub_envs.SampleEnv, stub_envs.SPACES["box"], space)] * 2
    env = ProcessVectorEnv(fns, num_workers=1)
    env.reset()
    with pytest.raises(ValueError, match="lack the key 'b'"):
        env.step({"a": np.zeros(2, np.int64)})
    with pytest.raises(ValueError, match="zip"):
        env.step({"a": np.zeros(2, np.int64), "b": np.zeros(3, np.int64)})
    env.step(env.action_space.sample())
    env.close()


@repeated
def test_bad_call_leaves_everything_usable(repeat):
    env = make("never", None)
    env.reset()
    with pytest.raises(AttributeError, match="no_such_thing"):
        env.get_attr("no_such_thing")
    with pytest.raises(TypeError):
        env.call("method", "unexpected")
    assert env.call("method") == (0, 0, 0)
    env.step(ZEROS)
    assert env.get_attr("steps") == (1, 1, 1)
    env.close()


def test_unpicklable_result_of_a_call_names_its_environment():
    import threading

    env = make("never", None)
    env.set_attr("extra", [1, 2, 3])
    with pytest.raises(TypeError):
        env.set_attr("extra", threading.Lock())
    assert env.get_attr("extra") == (1, 2, 3)
    env.close()


def test_final_observation_of_an_environment_that_reuses_its_buffer():
    env = ProcessVectorEnv([ReusingEnv] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    env.reset()
    env.step(np.zeros(2, np.int64))
    observations, _, _, _, infos = env.step(np.zeros(2, np.int64))
    np.testing.assert_array_equal(observations, [[0.0], [0.0]])
    np.testing.assert_array_equal(np.stack(infos["final_obs"]), [[2.0], [2.0]])
    env.close()


def test_an_action_that_is_kept_does_not_change():
    env = ProcessVectorEnv([KeepingEnv] * 2, num_workers=1)
    env.reset()
    env.step(np.full((2, 2), 1.0, np.float32))
    env.step(np.full((2, 2), 2.0, np.float32))
    for kept in env.get_attr("kept"):
        np.testing.assert_array_equal(kept, [1.0, 1.0])
    env.close()


def test_second_close_and_use_after_close():
    env = make("never", None)
    env.close()
    env.close()
    assert env.closed
    for use in (
        env.reset,
        lambda: env.step(ZEROS),
        lambda: env.call("method"),
        lambda: env.get_attr("steps"),
        lambda: env.set_attr("steps", 1),
        env.render,
        lambda: env.np_random,
        env.step_wait,
        env.reset_wait,
        env.call_wait,
        lambda: env.send(ZEROS, [0, 1, 2]),
        lambda: env.send_reset([0]),
        env.recv,
    ):
        with pytest.raises(ClosedEnvironmentError, match="after a call to `close"):
            use()
