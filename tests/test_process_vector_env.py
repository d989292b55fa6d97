"""The contract of AsyncVectorEnv: arguments, attributes, order of calls, calls and attributes."""

import functools
import inspect
import multiprocessing
import time

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from stub_envs import CountingEnv, SampleEnv, ScriptedEnv

from batchgym import ProcessVectorEnv

ZEROS = np.zeros(3, np.int64)


@pytest.fixture(scope="module")
def env():
    env = ProcessVectorEnv([CountingEnv] * 3, num_workers=2)
    env.reset(seed=0)
    yield env
    env.close()


def test_arguments_are_those_of_async_vector_env_in_order():
    theirs = list(inspect.signature(AsyncVectorEnv).parameters.values())
    ours = list(inspect.signature(ProcessVectorEnv).parameters.values())[: len(theirs)]
    assert [(p.name, p.kind, p.default) for p in ours] == [
        (p.name, p.kind, p.default) for p in theirs
    ]
    rest = list(inspect.signature(ProcessVectorEnv).parameters.values())[len(theirs) :]
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in rest)


def test_attributes(env):
    assert env.num_envs == 3
    assert env.single_observation_space == CountingEnv().observation_space
    assert env.observation_space.shape == (3, 2)
    assert env.single_action_space == Discrete(5)
    assert env.render_mode is None
    assert env.spec is None
    assert not env.closed
    assert env.unwrapped is env
    assert repr(env) == "ProcessVectorEnv(num_envs=3)"
    assert env.metadata["render_fps"] == 30
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert "autoreset_mode" not in CountingEnv.metadata
    for name in inspect.signature(AsyncVectorEnv).parameters:
        assert hasattr(env, name)


def test_the_owner_makes_no_environment(monkeypatch):
    # In the workers the stub is a fresh import, which the patch does not reach.
    monkeypatch.setattr(CountingEnv, "__init__", lambda self: pytest.fail("made in the owner"))
    made = ProcessVectorEnv([CountingEnv] * 2, observation_mode="different")
    assert made.reset()[0].shape == (2, 2)
    made.close()


@pytest.mark.parametrize(
    ("kwargs", "error", "match"),
    [
        ({"env_fns": []}, IndexError, "env_fns` is empty"),
        ({"env_fns": (f for f in [CountingEnv])}, TypeError, "len"),
        ({"env_fns": [CountingEnv()]}, TypeError, r"env_fns\[0\]"),
        ({"worker": print}, ValueError, "`worker` must be None"),
        ({"context": "threads"}, ValueError, "cannot find context for 'threads'"),
        ({"autoreset_mode": "next_step"}, ValueError, "'next_step' is not a valid AutoresetMode"),
        ({"observation_mode": "other"}, ValueError, "Invalid `observation_mode`, expected: 'same'"),
        ({"observation_mode": (1, 2)}, TypeError, "Expected both elements of observation_mode"),
        ({"max_concurrency": 0}, ValueError, "`max_concurrency` must be a positive or None, got 0"),
        ({"max_concurrency": 1.5}, ValueError, "`max_concurrency` must be an integer or None"),
        ({"num_workers": 0}, ValueError, "`num_workers` must be at least 1, got 0"),
        ({"num_workers": "auto"}, TypeError, "`num_workers` must be an integer or None"),
        ({"infos": "some"}, ValueError, '`infos` must be "all", "none" or a list'),
        ({"infos": [1]}, TypeError, "keys in `infos` must be strings"),
        ({"restart_workers": -1}, ValueError, "`restart_workers` must not be negative"),
        ({"restart_workers": 1.0}, TypeError, "`restart_workers` must be an integer"),
        ({"start_timeout": 0}, ValueError, "`start_timeout` must be positive"),
    ],
)
def test_bad_arguments(kwargs, error, match):
    with pytest.raises(error, match=match):
        ProcessVectorEnv(**{"env_fns": [CountingEnv], **kwargs})


@pytest.mark.parametrize(
    ("context", "daemon"), [(None, True), ("fork", False), ("spawn", True), ("forkserver", False)]
)
def test_contexts_and_daemon_are_accepted(context, daemon):
    env = ProcessVectorEnv([CountingEnv], context=context, daemon=daemon)
    assert (env.context, env.daemon) == (context, daemon)
    env.close()


def test_number_of_workers():
    def pids(**kwargs):
        env = ProcessVectorEnv([CountingEnv] * 5, **kwargs)
        found = env.call("where")
        env.close()
        return [found.count(pid) for pid in dict.fromkeys(found)]

    assert pids(num_workers=1) == [5]
    assert pids(num_workers=2) == [2, 3]
    assert pids(num_workers=99) == [1] * 5
    assert pids(num_workers=3, max_concurrency=2) == [2, 3]


def test_spaces_that_differ():
    fns = [lambda high=high: SampleEnv(Box(0, high, (2,))) for high in (1, 1, 2)]
    with pytest.raises(RuntimeError, match=r"are not equivalent.*'different'.*Environment 2"):
        ProcessVectorEnv(fns, num_workers=2)
    fns = [lambda n=n: SampleEnv(Box(0, 1, (n,))) for n in (1, 1, 2)]
    with pytest.raises(RuntimeError, match=r"do not share a common shape and dtype.*Environment 2"):
        ProcessVectorEnv(fns, observation_mode=(Box(0, 1, (3, 1)), Box(0, 1, (1,))))
    fns = [lambda n=n: SampleEnv(Box(0, 1, (2,)), Discrete(n)) for n in (2, 2, 3)]
    with pytest.raises(RuntimeError, match="have an action space different"):
        ProcessVectorEnv(fns)


def test_order_of_calls():
    env = ProcessVectorEnv([CountingEnv] * 3, num_workers=2)
    waits = {"reset": env.reset_wait, "step": env.step_wait, "call": env.call_wait}
    starts = {
        "reset": env.reset_async,
        "step": lambda: env.step_async(ZEROS),
        "call": lambda: env.call_async("where"),
    }
    others = {**starts, "set_attr": lambda: env.set_attr("length", 3)}
    for name, wait in waits.items():
        with pytest.raises(NoAsyncCallError, match=f"`{name}_wait` without any prior call to"):
            wait()
    env.reset()
    for pending, start in starts.items():
        start()
        for name, other in others.items():
            with pytest.raises(
                AlreadyPendingCallError,
                match=f"Calling `{name}.*` while waiting for a pending call to `{pending}`",
            ):
                other()
        for name, wait in waits.items():
            if name != pending:
                with pytest.raises(NoAsyncCallError):
                    wait()
        waits[pending]()
    env.close()


@pytest.mark.filterwarnings("ignore:.*(ERROR|WARN)")
@pytest.mark.parametrize("name", ["reset", "step", "call"])
def test_timeouts_are_those_of_multiprocessing(name):
    def dawdle(env):
        time.sleep(0.4)

    where = "method" if name == "call" else name
    env = ProcessVectorEnv([functools.partial(ScriptedEnv, where, dawdle)] * 3, num_workers=1)
    if name == "step":
        env.reset()
    start = {
        "reset": env.reset_async,
        "step": lambda: env.step_async(ZEROS),
        "call": lambda: env.call_async("method"),
    }[name]
    wait = getattr(env, f"{name}_wait")
    start()
    with pytest.raises(multiprocessing.TimeoutError, match=f"`{name}_wait` has timed out after 0"):
        wait(timeout=0.01)
    wait(timeout=20)
    env.close()


@pytest.mark.filterwarnings("ignore:.*(ERROR|WARN)")
def test_close_while_something_is_pending():
    env = ProcessVectorEnv([CountingEnv] * 3, num_workers=2)
    env.reset()
    env.step_async(ZEROS)
    with pytest.warns(UserWarning, match="Calling `close` while waiting .* `step` to complete"):
        env.close()
    assert [process.returncode for process in env.processes] == [0, 0]


def test_call_and_attributes(env):
    env.reset()
    assert env.call("add", 5) == (5, 5, 5)
    assert env.call("add", 5, twice=True) == (10, 10, 10)
    assert env.get_attr("length") == (3, 3, 3)
    assert env.call("length") == (3, 3, 3)
    assert len(set(env.get_attr("where"))) == 2  # callable, hence called
    for name in ("reset", "step", "close", "_setattr", "_check_spaces"):
        with pytest.raises(ValueError, match=f"call function `{name}` with `call`, use `{name}`"):
            env.call(name)


def test_set_attr(env):
    env.set_attr("mark", [1, 2, 3])
    assert env.get_attr("mark") == (1, 2, 3)
    env.set_attr("mark", ("a", "b", "c"))
    assert env.get_attr("mark") == ("a", "b", "c")
    env.set_attr("mark", "abc")
    assert env.get_attr("mark") == ("abc",) * 3
    env.set_attr("mark", np.arange(3))
    for value in env.get_attr("mark"):
        np.testing.assert_array_equal(value, [0, 1, 2])
    with pytest.raises(ValueError, match="Got `2` values for 3 environments"):
        env.set_attr("mark", [1, 2])


def test_attributes_are_looked_up_through_wrappers():
    env = ProcessVectorEnv([lambda: gym.wrappers.TimeLimit(CountingEnv(length=9), 5)] * 2)
    assert env.get_attr("length") == (9, 9)
    env.set_attr("length", [1, 2])
    assert env.get_attr("length") == (1, 2)
    env.close()


def test_render():
    plain = ProcessVectorEnv([CountingEnv] * 2)
    assert plain.render() == (None, None)
    plain.close()
    env = ProcessVectorEnv([functools.partial(CountingEnv, render_mode="rgb_array")] * 2)
    assert env.render_mode == "rgb_array"
    env.reset()
    env.step(np.zeros(2, np.int64))
    frames = env.render()
    assert isinstance(frames, tuple)
    np.testing.assert_array_equal(np.stack(frames), np.ones((2, 2, 2, 3)))
    env.close()


def test_large_messages_both_ways(env):
    # Larger than any pipe: neither side may wait for the other to read.
    big = np.arange(3 * 10**6)
    env.set_attr("mark", big)
    for value in env.get_attr("mark"):
        np.testing.assert_array_equal(value, big)


def test_copies():
    env = ProcessVectorEnv([CountingEnv] * 2, num_workers=1)
    first, _ = env.reset()
    second, rewards, terminations, *_ = env.step(np.zeros(2, np.int64))
    env.step(np.zeros(2, np.int64))
    np.testing.assert_array_equal(first, [[0, 0]] * 2)
    np.testing.assert_array_equal(second, [[0, 1]] * 2)
    np.testing.assert_array_equal(rewards, [1, 1])
    np.testing.assert_array_equal(terminations, [False, False])
    assert second is not env.observations
    env.close()
    np.testing.assert_array_equal(env.observations, [[0, 2]] * 2)


def test_without_copies():
    env = ProcessVectorEnv([CountingEnv] * 2, num_workers=1, copy=False)
    first, _ = env.reset()
    second, *_ = env.step(np.zeros(2, np.int64))
    assert first is second is env.observations
    assert first.flags.writeable
    np.testing.assert_array_equal(first, [[0, 1]] * 2)
    env.close()
    np.testing.assert_array_equal(first, [[0, 1]] * 2)


def test_seeds_of_a_wrong_length_or_type(env):
    with pytest.raises(ValueError, match="must match num_envs=3 but got length=2"):
        env.reset(seed=[1, 2])
    with pytest.raises(TypeError, match="`seed` must be None, an integer or one seed per"):
        env.reset(seed=1.5)


def test_options_reach_the_environments(env):
    env.reset(seed=7, options={"level": 3})
    assert env.get_attr("last_options") == ({"level": 3},) * 3
    assert env.get_attr("last_seed") == (7, 8, 9)
    env.reset()
    assert env.get_attr("last_options") == (None,) * 3
    assert env.get_attr("last_seed") == (None,) * 3
    env.reset(options={"reset_mask": np.array([True] * 3)})
    assert env.get_attr("last_options") == ({},) * 3


@pytest.mark.parametrize(
    ("mask", "error", "match"),
    [
        ([True, False, True], TypeError, "must be a numpy array"),
        (np.array([True, False]), ValueError, r"must have shape `\(3,\)`, got \(2,\)"),
        (np.array([1, 0, 1]), TypeError, "must have `dtype=np.bool_`, got int64"),
        (np.zeros(3, np.bool_), ValueError, "at least one True value"),
    ],
    ids=str,
)
def test_bad_reset_masks(env, mask, error, match):
    with pytest.raises(error, match=match):
        env.reset(options={"reset_mask": mask})


def test_the_callers_options_stay_as_they_are(env):
    options = {"reset_mask": np.array([True, False, False]), "level": 1}
    env.reset(options=options)
    assert set(options) == {"reset_mask", "level"}


def test_infos_can_be_left_out():
    kwargs = {"num_workers": 1, "autoreset_mode": "SameStep"}
    actions = np.zeros(2, np.int64)
    fns = [functools.partial(CountingEnv, 2)] * 2

    none = ProcessVectorEnv(fns, infos="none", **kwargs)
    assert none.reset()[1] == {}
    assert none.step(actions)[4] == {}
    infos = none.step(actions)[4]
    assert set(infos) == {"final_obs", "_final_obs"}
    np.testing.assert_array_equal(np.stack(infos["final_obs"]), [[0, 2]] * 2)
    none.close()

    some = ProcessVectorEnv(fns, infos=["count"], **kwargs)
    assert some.reset()[1] == {}
    assert set(some.step(actions)[4]) == {"count", "_count"}
    infos = some.step(actions)[4]
    assert set(infos) == {"final_obs", "_final_obs", "final_info", "_final_info"}
    np.testing.assert_array_equal(infos["final_info"]["count"], [2, 2])
    some.close()
