"""T steps of N environments, as tensors, and how they are written down."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from batchppo.host_environment import HostEnvironment, Leaves


class Trajectory(NamedTuple):
    """T steps of N environments, time-major; the same in every autoreset mode.

    Attributes:
        observation: what was acted on, shape [T, N, ...], or a dict of such for a Dict space.
        action: what the policy answered, shape [T, N, ...].
        reward: shape [T, N], float32.
        terminated: where an episode ended in a final state, shape [T, N].
        truncated: where an episode was cut off, shape [T, N]; False where terminated.
        valid: False where the row is no transition but a reset, shape [T, N].
        start: where `observation` begins an episode, shape [T, N].
        last_observation: what the next step acts on, shape [N, ...].
        final_observation: the last observations of truncated episodes, shape [K, ...], in the
            order of `tf.where(truncated & valid)`.
        state: what the policy remembers for the next step; None if it remembers nothing.
    """

    observation: Any
    action: tf.Tensor
    reward: tf.Tensor
    terminated: tf.Tensor
    truncated: tf.Tensor
    valid: tf.Tensor
    start: tf.Tensor
    last_observation: Any
    final_observation: Any
    state: Any

    def next_observation(self) -> Any:
        """Returns what each step led to, shape [T, N, ...]: the final one where it was cut off.

        Where an episode terminated it is the next episode's first one, and of no use.
        """
        cut = tf.where(self.truncated & self.valid)

        def follow(observation: tf.Tensor, last: tf.Tensor, final: tf.Tensor) -> tf.Tensor:
            behind = tf.concat([observation[1:], last[None]], axis=0)
            return tf.tensor_scatter_nd_update(behind, cut, final)

        return tf.nest.map_structure(
            follow, self.observation, self.last_observation, self.final_observation
        )


class Recorder:
    """Writes down up to `steps` steps of an environment.

    Args:
        host: the environment.
        steps: T.

    Attributes:
        steps: the same.
        made: how many steps were made so far.

    Raises:
        ValueError: less than one step.
    """

    def __init__(self, host: HostEnvironment, steps: int) -> None:
        if steps < 1:
            raise ValueError(f"steps must be at least 1, got {steps}")
        host.start()
        num_envs = host.env.num_envs
        self.steps = steps
        self.made = 0
        self._host = host
        self._observations = [
            np.empty((steps + 1, *first.shape), first.dtype)
            for first in host.leaves(host.last.observations)
        ]
        self._starts = np.empty((steps + 1, num_envs), np.bool_)
        self._actions: NDArray[Any] | None = None
        self._rewards = np.empty((steps, num_envs), np.float32)
        self._flags = np.empty((3, steps, num_envs), np.bool_)
        self._final: list[Leaves] = [[leaf] for leaf in host.no_leaves()]
        self._observe(0)

    @property
    def present(self) -> Leaves:
        """The observations to act on next and, behind them, where they begin an episode.

        Rows of the record, which is written once: they may be shared with TensorFlow.
        """
        return [*(array[self.made] for array in self._observations), self._starts[self.made]]

    def step(self, action: NDArray[Any]) -> None:
        """Steps the environments and writes down what that gave."""
        t = self.made
        if self._actions is None:
            self._actions = np.empty((self.steps, *action.shape), action.dtype)
        self._actions[t] = action
        last = self._host.step(action)
        self._rewards[t] = last.rewards
        self._flags[0, t], self._flags[1, t] = last.terminated, last.truncated
        self._flags[2, t] = last.valid
        if last.final_observations is not None:
            counted = last.valid[last.truncated]
            for rows, leaf in zip(self._final, self._host.final_leaves(), strict=True):
                rows.append(leaf[counted])
        self._observe(t + 1)
        self.made = t + 1

    def arrays(self) -> Leaves:
        """Returns the rows so far, in the order of a trajectory's fields up to the state."""
        if self._actions is None:
            spec = self._host.action_spec
            self._actions = np.empty((self.steps, *spec.shape), spec.dtype.as_numpy_dtype)
        made = self.made
        return [
            *(array[:made] for array in self._observations),
            self._actions[:made],
            self._rewards[:made],
            *self._flags[:, :made],
            self._starts[:made],
            *(array[made] for array in self._observations),
            *(np.concatenate(rows) for rows in self._final),
        ]

    def _observe(self, t: int) -> None:
        observations = tf.nest.flatten(self._host.last.observations)
        for array, leaf in zip(self._observations, observations, strict=True):
            array[t] = leaf
        self._starts[t] = self._host.last.starts


def trajectory_spec(host: HostEnvironment, action: tf.TensorSpec) -> Trajectory:
    """Returns the specifications of a trajectory of any length; it has no state."""
    flags = tf.TensorSpec((None, host.env.num_envs), tf.bool)
    return Trajectory(
        observation=tf.nest.map_structure(
            lambda spec: tf.TensorSpec((None, *spec.shape), spec.dtype), host.observation_spec
        ),
        action=tf.TensorSpec((None, *action.shape), action.dtype),
        reward=tf.TensorSpec((None, host.env.num_envs), tf.float32),
        terminated=flags,
        truncated=flags,
        valid=flags,
        start=flags,
        last_observation=host.observation_spec,
        final_observation=host.final_spec,
        state=(),
    )
