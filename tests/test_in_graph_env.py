"""A vector environment as TensorFlow operations."""

import gymnasium
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from ppo_envs import CountingEnv

from batchppo import InGraphBatchEnv
from batchppo.errors import SpaceError

MODES = list(AutoresetMode)
ZERO = tf.zeros(2, tf.int64)


def counting(mode=AutoresetMode.SAME_STEP):
    envs = [lambda i=i: CountingEnv(i) for i in range(2)]
    return InGraphBatchEnv(SyncVectorEnv(envs, autoreset_mode=mode))


@pytest.mark.parametrize("in_function", [False, True])
def test_reset_and_step(in_function):
    env = counting()
    wrap = tf.function if in_function else lambda function: function
    reset, step = wrap(env.reset), wrap(env.step)
    np.testing.assert_array_equal(reset(), [[0, 0, 0], [1, 0, 0]])
    result = step(ZERO)
    np.testing.assert_array_equal(result.observation, [[0, 0, 1], [1, 0, 1]])
    np.testing.assert_array_equal(result.reward, [1, 101])
    assert result.reward.dtype == tf.float32
    result = step(ZERO)  # environment 0 terminates: it shows the next episode
    np.testing.assert_array_equal(result.observation, [[0, 1, 0], [1, 0, 2]])
    np.testing.assert_array_equal(result.terminated, [True, False])
    np.testing.assert_array_equal(result.start, [True, False])
    assert result.final_observation.shape == (0, 3)


@pytest.mark.parametrize("mode", MODES)
def test_a_truncated_episode_shows_its_last_observation_in_every_mode(mode):
    env = counting(mode)
    env.reset()
    step = tf.function(env.step)
    results = [step(ZERO) for _ in range(7)]
    (cut,) = [r for r in results if r.truncated.numpy()[0]]
    np.testing.assert_array_equal(cut.final_observation, [[0, 1, 3]])


def test_the_present_is_there_as_tensors():
    env = counting()
    np.testing.assert_array_equal(env.observation, [[0, 0, 0], [1, 0, 0]])  # reset by itself
    np.testing.assert_array_equal(env.reward, [0, 0])
    np.testing.assert_array_equal(env.action, [0, 0])
    env.step(tf.ones(2, tf.int64))
    env.step(tf.ones(2, tf.int64))

    @tf.function
    def present():
        return env.observation, env.action, env.reward, env.terminated, env.truncated

    observation, action, reward, terminated, truncated = present()
    np.testing.assert_array_equal(observation, [[0, 1, 0], [1, 0, 2]])
    np.testing.assert_array_equal(action, [1, 1])
    np.testing.assert_array_equal(reward, [2, 102])
    np.testing.assert_array_equal(terminated, [True, False])
    np.testing.assert_array_equal(truncated, [False, False])
    assert env.num_envs == 2
    assert env.action_spec == tf.TensorSpec((2,), tf.int64)


def test_observations_do_not_change_behind_ones_back():
    env = InGraphBatchEnv(SyncVectorEnv([CountingEnv], copy=False))
    first = env.reset()
    second = env.step(ZERO[:1]).observation
    env.step(ZERO[:1])
    np.testing.assert_array_equal(first, [[0, 0, 0]])
    np.testing.assert_array_equal(second, [[0, 0, 1]])


def test_a_seed_reaches_the_environments():
    def cart_poles():
        return SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 2)

    expected, _ = cart_poles().reset(seed=5)
    np.testing.assert_array_equal(InGraphBatchEnv(cart_poles()).reset(seed=5), expected)


def test_exceptions_arrive_as_they_are():
    class Failing(CountingEnv):
        error = LookupError("gone")

        def step(self, action):
            raise self.error

    env = InGraphBatchEnv(SyncVectorEnv([Failing]))
    with pytest.raises(LookupError) as caught:
        env.step(ZERO[:1])
    assert caught.value is Failing.error
    with pytest.raises(LookupError) as caught, env.original_errors():
        tf.function(env.step)(ZERO[:1])
    assert caught.value is Failing.error


def test_what_has_no_tensor_is_refused():
    class Text(CountingEnv):
        observation_space = spaces.Text(3)

    class TwoActions(CountingEnv):
        action_space = spaces.Dict(a=spaces.Discrete(2))

    with pytest.raises(SpaceError, match=r"observations of Text.* have no tensor"):
        InGraphBatchEnv(SyncVectorEnv([Text]))
    with pytest.raises(SpaceError, match="actions must be one array"):
        InGraphBatchEnv(SyncVectorEnv([TwoActions]))


def test_close_closes_the_vector_environment():
    env = counting()
    env.close()
    assert env.vector_env.closed


@pytest.mark.parametrize("repetition", range(5))
def test_operations_run_in_the_order_of_the_program(repetition):
    env = counting()

    @tf.function
    def whole():
        first = env.reset()
        rewards = [env.step(ZERO).reward[0] for _ in range(3)]
        last = env.reward
        for _ in tf.range(2):
            env.step(ZERO)
        return first, rewards, last, env.reward

    # Episode 2k + 0 begins with each reset and lasts 2 steps, the next one 3.
    first, rewards, last, after = whole()
    np.testing.assert_array_equal(first[0], [0, 0, 0])
    assert [float(reward) for reward in rewards] == [1, 2, 11]
    assert float(last[0]) == 11
    assert float(after[0]) == 13
