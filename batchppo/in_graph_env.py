"""A vector environment as TensorFlow operations."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from batchppo.host_environment import HostEnvironment


class InGraphStep(NamedTuple):
    """What one step of N environments gave, as tensors; the same in every autoreset mode.

    Attributes:
        observation: what to act on next, shape [N, ...], or a dict of such for a Dict space.
        reward: shape [N], float32.
        terminated: where an episode ended in a final state, shape [N].
        truncated: where an episode was cut off, shape [N]; False where terminated.
        valid: False where the row is no transition but a reset, shape [N].
        start: where `observation` begins an episode, shape [N].
        final_observation: the last observations of truncated episodes, shape [K, ...], in the
            order of `tf.where(truncated)`.
    """

    observation: Any
    reward: tf.Tensor
    terminated: tf.Tensor
    truncated: tf.Tensor
    valid: tf.Tensor
    start: tf.Tensor
    final_observation: Any


class InGraphBatchEnv:
    """A vector environment whose reset and step are TensorFlow operations.

    It can be used eagerly and inside of a `tf.function`. Eagerly, what the environment raises
    arrives as it is; around a `tf.function` of your own, `original_errors` sees to that.

        env = InGraphBatchEnv(gymnasium.make_vec("CartPole-v1", num_envs=8))
        observation = env.reset(seed=0)
        step = env.step(tf.zeros(8, tf.int64))

    Tensors have the types of the spaces; rewards are float32. Inside of a `tf.function` the
    environments are stepped by TensorFlow's threads: environments that belong to one thread (such
    as renderers with OpenGL) need processes of their own, which batchgym gives them.

    Args:
        vector_env: any `gymnasium.vector.VectorEnv`, in any autoreset mode.

    Attributes:
        vector_env: the same.
        host: the environment as the operations' host sees it.

    Raises:
        SpaceError: a space that has no tensors.
        ValueError: the environment does not say how it resets.
    """

    def __init__(self, vector_env: VectorEnv[Any, Any, Any]) -> None:
        self.vector_env = vector_env
        self.host = HostEnvironment(vector_env)
        num_envs = vector_env.num_envs
        flags = tf.TensorSpec((num_envs,), tf.bool)
        rewards = tf.TensorSpec((num_envs,), tf.float32)
        self._step_spec = InGraphStep(
            self.observation_spec, rewards, flags, flags, flags, flags, self.host.final_spec
        )

    @property
    def num_envs(self) -> int:
        """N, how many environments there are."""
        return int(self.vector_env.num_envs)

    @property
    def observation_spec(self) -> Any:
        """`tf.TensorSpec` of a batch of observations, or a dict of such."""
        return self.host.observation_spec

    @property
    def action_spec(self) -> tf.TensorSpec:
        """`tf.TensorSpec` of a batch of actions."""
        return self.host.action_spec

    def reset(self, seed: int | None = None) -> Any:
        """Resets all environments and returns their observations.

        Args:
            seed: environment i gets `seed + i`; None for the environments' own choice.
        """

        def reset() -> list[NDArray[Any]]:
            self.host.reset(seed)
            return self.host.leaves(self.host.last.observations)

        return self._run(reset, [], self.observation_spec)

    def step(self, action: tf.Tensor) -> InGraphStep:
        """Makes one step of all environments, which are reset first if they never were.

        Args:
            action: shape [N, ...], of a type that converts to the action space's.
        """

        def step(array: NDArray[Any]) -> list[NDArray[Any]]:
            self.host.step(array)
            return self._last()

        result: InGraphStep = self._run(step, [tf.convert_to_tensor(action)], self._step_spec)
        return result

    @property
    def observation(self) -> Any:
        """The present observations, which the next action is for."""
        return self._present().observation

    @property
    def action(self) -> tf.Tensor:
        """The last actions; zeros behind a reset."""

        def read() -> list[NDArray[Any]]:
            self.host.start()
            return [self.host.action.astype(self.action_spec.dtype.as_numpy_dtype)]

        return self._run(read, [], self.action_spec)

    @property
    def reward(self) -> tf.Tensor:
        """The last step's rewards, shape [N]; 0 behind a reset."""
        return self._present().reward

    @property
    def terminated(self) -> tf.Tensor:
        """Where the last step ended an episode in a final state, shape [N]."""
        return self._present().terminated

    @property
    def truncated(self) -> tf.Tensor:
        """Where the last step cut an episode off, shape [N]."""
        return self._present().truncated

    def original_errors(self) -> AbstractContextManager[None]:
        """Returns a context in which the environment's own exceptions come out of tf.functions.

        TensorFlow turns what a Python function raises into UnknownError and keeps its text only.
        """
        return self.host.original_errors()

    def close(self) -> None:
        """Closes the vector environment."""
        self.vector_env.close()

    def _present(self) -> InGraphStep:
        def read() -> list[NDArray[Any]]:
            self.host.start()
            return self._last()

        present: InGraphStep = self._run(read, [], self._step_spec)
        return present

    def _last(self) -> list[NDArray[Any]]:
        """Returns what the last step gave, as arrays of the types of `_step_spec`."""
        host, last = self.host, self.host.last
        flags = (last.terminated, last.truncated, last.valid, last.starts)
        return [
            *host.leaves(last.observations),
            last.rewards.astype(np.float32),
            *map(np.array, flags),
            *host.final_leaves(),
        ]

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def _run(self, function: Callable[..., Any], arguments: list[tf.Tensor], specs: Any) -> Any:
        """Returns what a function of the host gives: now, or as an operation of a graph."""
        if tf.inside_function():
            return self.host.in_graph(function, arguments, specs)
        arrays = function(*(tensor.numpy() for tensor in arguments))
        return tf.nest.pack_sequence_as(specs, [tf.convert_to_tensor(array) for array in arrays])
