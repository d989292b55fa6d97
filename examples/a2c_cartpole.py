"""Advantage actor-critic (Mnih et al. 2016, arXiv:1602.01783) on `batchppo.simulate`.

The rollout is one TensorFlow operation, the update another.
"""

import gymnasium
import keras
import numpy as np
import tensorflow as tf

import batchppo

DISCOUNT = 0.99


class Network(keras.Model):
    """Two hidden layers; reads rows with any number of leading axes."""

    def __init__(self, outputs, scale):
        super().__init__()
        initial = keras.initializers.Orthogonal(scale)
        self.hidden = [keras.layers.Dense(64, activation="tanh") for _ in range(2)]
        self.output_layer = keras.layers.Dense(outputs, kernel_initializer=initial)

    def call(self, rows):
        """Returns outputs, shape [..., outputs], for rows, shape [..., inputs]."""
        for layer in self.hidden:
            rows = layer(rows)
        return self.output_layer(rows)


class A2C:
    """A policy and a value network for a Discrete action space."""

    def __init__(self, actions, updates):
        self.actor, self.critic = Network(actions, 0.01), Network(1, 1.0)
        falling = keras.optimizers.schedules.PolynomialDecay(3e-3, updates, 0.0)
        self.optimizer = keras.optimizers.Adam(falling)

    def act(self, observation):
        """Draws actions, shape [N], for observations, shape [N, size]."""
        logits = self.actor(observation)
        noise = -tf.math.log(-tf.math.log(tf.random.uniform(tf.shape(logits), 1e-9)))
        return tf.argmax(logits + noise, axis=-1)  # a draw from softmax(logits)

    @tf.function
    def update(self, trajectory):
        """Makes one gradient step from a trajectory of shape [T, N]."""
        next_value = self.values(trajectory.next_observation())
        next_value = tf.where(trajectory.terminated, 0.0, next_value)
        cut = trajectory.terminated | trajectory.truncated
        returns = n_step_returns(trajectory.reward, next_value, cut)
        weights = tf.cast(trajectory.valid, tf.float32)  # the rows that are no resets
        with tf.GradientTape() as tape:
            advantages = returns - self.values(trajectory.observation)
            log_probs = tf.nn.log_softmax(self.actor(trajectory.observation))
            chosen = tf.gather(log_probs, trajectory.action, batch_dims=2)
            entropy = -tf.reduce_sum(tf.exp(log_probs) * log_probs, axis=-1)
            gain = chosen * tf.stop_gradient(advantages) + 0.01 * entropy
            rows = 0.5 * tf.square(advantages) - gain
            loss = tf.reduce_sum(rows * weights) / tf.reduce_sum(weights)
        variables = self.actor.weights + self.critic.weights
        gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, variables), 0.5)
        self.optimizer.apply_gradients(zip(gradients, variables, strict=True))

    def values(self, observation):
        """Returns V(s), shape [T, N]."""
        return self.critic(observation)[..., 0] * 100.0  # CartPole's returns are about that large


def n_step_returns(reward, next_value, cut):
    """Returns r + discount * (what follows): the value at a cut and at the end, else the return."""

    def behind(follows, row):
        return row[0] + DISCOUNT * tf.where(row[2], row[1], follows)

    return tf.scan(behind, (reward, next_value, cut), next_value[-1], reverse=True)


def train(iterations=800, steps=16, num_envs=16, seed=0, report=print):
    """Returns a trained agent."""
    keras.utils.set_random_seed(seed)
    env = batchppo.InGraphBatchEnv(gymnasium.make_vec("CartPole-v1", num_envs))
    agent = A2C(actions=2, updates=iterations)
    env.reset(seed=seed)
    ended = []
    for iteration in range(1, iterations + 1):
        trajectory = batchppo.simulate(env, agent.act, steps)
        agent.update(trajectory)
        ended.append(np.mean(trajectory.terminated | trajectory.truncated))
        if iteration % 100 == 0:
            report(f"iteration {iteration}: {1 / np.mean(ended[-100:]):.0f} steps per episode")
    env.close()
    return agent


if __name__ == "__main__":
    train()
