"""The fused rollout against a loop in Python, and what may end it early."""

import gc
import os
import signal
import threading
import weakref

import gymnasium
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from ppo_envs import CountingEnv, DictCueEnv, PictureAndWordEnv

import batchgym
from batchppo import InGraphBatchEnv, simulate, simulation
from batchppo.trajectory import Trajectory

MODES = list(AutoresetMode)
WEIGHTS = tf.constant(np.random.default_rng(0).standard_normal((4, 2)), tf.float32)


def cart_poles(mode, count=3):
    """CartPoles whose episodes are also cut off, so that both ends come up."""
    return SyncVectorEnv(
        [lambda: gymnasium.make("CartPole-v1", max_episode_steps=15)] * count, autoreset_mode=mode
    )


def counting(mode=AutoresetMode.NEXT_STEP, count=3):
    envs = [lambda i=i: CountingEnv(i) for i in range(count)]
    return InGraphBatchEnv(SyncVectorEnv(envs, autoreset_mode=mode))


def linear(observation):
    return tf.argmax(tf.sin(20.0 * observation @ WEIGHTS), axis=-1)  # drops the pole now and then


def leaning(observation, state):
    """Acts on the running sum of what it saw in an episode."""
    state = {"sum": state["sum"] + observation, "steps": state["steps"] + 1}
    return linear(state["sum"]), state


def zero(observation):
    return tf.zeros(tf.shape(observation)[0], tf.int64)


def unfused(env, policy, steps, mode, state=None):
    """The same rollout by Gymnasium's own calls; returns rows, final observations and the state."""
    policy = tf.function(policy)
    observation, _ = env.reset(seed=7)
    start, done = np.ones(env.num_envs, bool), np.zeros(env.num_envs, bool)
    rows, final = [], []
    for _ in range(steps):
        seen, before = observation.copy(), done
        if state is None:
            action = policy(seen)
        else:
            for memory in state.values():
                memory[start] = 0
            action, state = policy(seen, state)
            state = {name: memory.numpy() for name, memory in state.items()}
        observation, reward, terminated, truncated, infos = env.step(action.numpy())
        truncated = truncated & ~terminated
        last = infos.get("final_obs", observation)
        final += [np.array(last[i]) for i in np.flatnonzero(truncated)]
        valid = ~before if mode == AutoresetMode.NEXT_STEP else np.ones_like(done)
        rows.append((seen, action.numpy(), reward, terminated, truncated, valid, start))
        done = terminated | truncated
        start = before if mode == AutoresetMode.NEXT_STEP else done
        if mode == AutoresetMode.DISABLED and done.any():
            observation, _ = env.reset(options={"reset_mask": done})
    return [np.array(column) for column in zip(*rows, strict=True)], np.array(final), state


@pytest.mark.parametrize("chunk", [0.5, 0.0])
@pytest.mark.parametrize("remembers", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_fused_equals_unfused(mode, remembers, chunk, monkeypatch):
    monkeypatch.setattr(simulation, "CHUNK_SECONDS", chunk)  # 0: an operation per step
    policy = leaning if remembers else linear
    state = {"sum": np.zeros((3, 4), np.float32), "steps": np.zeros(3, np.int32)}
    state = state if remembers else None
    rows, final, last_state = unfused(cart_poles(mode), policy, 40, mode, state)
    env = InGraphBatchEnv(cart_poles(mode))
    env.reset(seed=7)
    if remembers:
        state = tf.nest.map_structure(tf.constant, state)
    first = simulate(env, policy, 25, state)
    second = simulate(env, policy, 15, first.state)
    for name, expected in zip(Trajectory._fields[:7], rows, strict=True):
        both = np.concatenate([getattr(first, name).numpy(), getattr(second, name).numpy()])
        np.testing.assert_array_equal(both, expected.astype(both.dtype), name)
    both = np.concatenate([first.final_observation.numpy(), second.final_observation.numpy()])
    np.testing.assert_array_equal(both, final)
    assert len(final) > 1
    assert rows[3].sum() > 1
    if remembers:
        tf.nest.map_structure(np.testing.assert_array_equal, second.state, last_state)


@pytest.mark.parametrize("repetition", range(3))
@pytest.mark.parametrize("mode", MODES)
def test_one_operation_of_a_users_function_gives_the_same(mode, repetition):
    expected, in_graph = (InGraphBatchEnv(cart_poles(mode)) for _ in range(2))
    whole = tf.function(lambda steps: simulate(in_graph, linear, steps))
    for env in (expected, in_graph):
        env.reset(seed=7)
    for steps in (20, 5):
        tf.nest.map_structure(
            np.testing.assert_array_equal,
            whole(tf.constant(steps))._replace(state=()),
            simulate(expected, linear, steps)._replace(state=()),
        )


@pytest.mark.parametrize("mode", MODES)
def test_what_a_step_leads_to_is_the_final_observation_where_it_was_cut_off(mode):
    trajectory = simulate(counting(mode), zero, 30)
    seen, led_to = trajectory.observation.numpy(), trajectory.next_observation().numpy()
    rows = (trajectory.valid & ~trajectory.terminated).numpy()
    assert (trajectory.truncated.numpy() & rows).sum() > 5
    # Identity and episode stay, the count of steps goes up by one.
    np.testing.assert_array_equal(led_to[rows], seen[rows] + [0, 0, 1])


def test_shared_memory_is_copied():
    def rows(env):
        env = InGraphBatchEnv(env)
        env.reset(seed=3)
        return simulate(env, linear, 30)

    processes = batchgym.make_vec("CartPole-v1", 3, num_workers=1)
    try:
        shared = rows(processes)
    finally:
        processes.close()
    sync = SyncVectorEnv(
        [lambda: gymnasium.make("CartPole-v1")] * 3,
        autoreset_mode=processes.metadata["autoreset_mode"],
    )
    for name in ("observation", "action", "reward", "terminated", "last_observation"):
        np.testing.assert_array_equal(getattr(shared, name), getattr(rows(sync), name), name)


def test_dicts_images_and_choices_keep_their_types():
    env = InGraphBatchEnv(SyncVectorEnv([PictureAndWordEnv] * 2))
    trajectory = simulate(env, lambda o: tf.cast(o["word"], tf.int32), 9)
    assert trajectory.observation["picture"].shape == (9, 2, 36, 36, 1)
    assert trajectory.observation["picture"].dtype == tf.uint8
    assert trajectory.observation["word"].dtype == tf.int64
    np.testing.assert_array_equal(trajectory.action, trajectory.observation["word"])
    assert trajectory.final_observation["picture"].shape == (2, 36, 36, 1)
    led_to = trajectory.next_observation()
    np.testing.assert_array_equal(led_to["word"][7], trajectory.final_observation["word"])


def test_nested_dicts():
    env = InGraphBatchEnv(SyncVectorEnv([DictCueEnv] * 2))
    names = sorted(env.vector_env.single_observation_space.spaces)
    trajectory = simulate(env, lambda o: tf.zeros(2, tf.int64), 3)
    assert sorted(trajectory.observation) == names


def test_a_policy_is_compiled_once():
    env, calls = counting(), []

    def policy(observation):
        calls.append(observation)
        return zero(observation)

    for steps in (3, 4, 50):
        assert simulate(env, policy, steps).reward.shape == (steps, 3)
    assert len(calls) == 1


def test_nothing_keeps_a_dropped_environment():
    env = counting()
    simulate(env, zero, 2)
    dropped = weakref.ref(env)
    del env
    gc.collect()
    assert dropped() is None


class MyError(Exception):
    """What no library knows."""


class ScriptedEnv(CountingEnv):
    """Calls `what` in its fifth step."""

    def __init__(self, what):
        super().__init__()
        self.what = what
        self.steps = 0

    def step(self, action):
        self.steps += 1
        if self.steps == 5:
            self.what()
        return super().step(action)


def scripted(what):
    envs = [CountingEnv, lambda: ScriptedEnv(what)]
    return InGraphBatchEnv(SyncVectorEnv(envs, autoreset_mode=AutoresetMode.SAME_STEP))


@pytest.mark.parametrize("error", [MyError("mine"), ValueError("x"), StopIteration(), SystemExit()])
def test_the_environments_own_exception_arrives_and_training_can_go_on(error):
    def fail():
        raise error

    env = scripted(fail)
    with pytest.raises(type(error)) as caught:
        simulate(env, zero, 100)
    assert caught.value is error
    after = simulate(env, zero, 6)
    assert after.start.numpy()[0].all()  # where it was is unknown, so it was reset
    assert after.valid.numpy().all()


def test_the_environments_own_exception_comes_out_of_a_users_function():
    error = MyError("mine")

    def fail():
        raise error

    env = scripted(fail)
    whole = tf.function(lambda: simulate(env, zero, 100))
    with pytest.raises(MyError) as caught, env.original_errors():
        whole()
    assert caught.value is error
    with pytest.raises(tf.errors.OpError), env.original_errors():
        tf.debugging.assert_equal(1, 2)  # not the environment's


def test_a_stop_flag_ends_it_behind_the_step():
    stop = threading.Event()
    env = scripted(stop.set)
    trajectory = simulate(env, zero, 100, stop=stop)
    assert trajectory.reward.shape == (5, 2)
    assert simulate(env, zero, 100, stop=stop).observation.shape == (0, 2, 3)
    stop.clear()
    after = simulate(env, zero, 3)
    np.testing.assert_array_equal(after.observation[0], trajectory.last_observation)


def test_ctrl_c_is_heard(monkeypatch):
    monkeypatch.setattr(simulation, "CHUNK_SECONDS", 0.05)
    env = scripted(lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        simulate(env, zero, 1_000_000)
    assert simulate(env, zero, 3).valid.numpy().all()


def test_wrong_arguments_are_named():
    env = counting()
    with pytest.raises(ValueError, match="steps must be at least 1, got 0"):
        simulate(env, zero, 0)
    with pytest.raises(ValueError, match=r"actions of shape \(2,\).*expected \(3,\)"):
        simulate(env, lambda _: tf.zeros(2, tf.int64), 1)
    with pytest.raises(ValueError, match="type float32"):
        simulate(env, lambda _: tf.zeros(3), 1)
    with pytest.raises(ValueError, match="call simulate eagerly"):
        tf.function(lambda: simulate(env, zero, 1, stop=threading.Event()))()


def test_no_steps_are_refused_in_a_users_function_too():
    env = counting()
    with pytest.raises(ValueError, match="steps must be at least 1, got 0"), env.original_errors():
        tf.function(lambda: simulate(env, zero, 0))()


def test_actions_are_converted_to_the_spaces_type():
    class Box(CountingEnv):
        action_space = spaces.Box(-1.0, 1.0, (2,), np.float64)

        def step(self, action):
            assert self.action_space.contains(action)
            return super().step(action)

    env = InGraphBatchEnv(SyncVectorEnv([Box] * 2))
    assert simulate(env, lambda _: tf.zeros((2, 2), tf.float32), 3).action.dtype == tf.float32
