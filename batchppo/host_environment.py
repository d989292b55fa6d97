"""A vector environment as the host of TensorFlow operations sees it: arrays of fixed types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from batchppo.errors import SpaceError
from batchppo.transitions import Stepper, Transitions

Leaves: TypeAlias = list[NDArray[Any]]
"""The arrays of a batch of observations, in the order of `tf.nest.flatten`."""

_ARRAYS = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


class HostEnvironment:
    """Steps a vector environment, remembers where it is and what it raised.

    Args:
        env: the vector environment, in any autoreset mode.

    Attributes:
        env: the same.
        observation_spec: specifications of a batch of observations, in the space's nesting.
        final_spec: those of final observations, of which there are any number.
        action_spec: the specification of a batch of actions.
        action: the last actions, shape [N, ...]; zeros behind a reset.
        last: what the last step gave; behind a reset, rewards of 0 and no flags.
        started: whether it is known in which state the environments are.

    Raises:
        SpaceError: a space that has no tensors.
        ValueError: the environment does not say how it resets.
    """

    last: Transitions
    action: NDArray[Any]

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        self.env = env
        self.observation_spec = _spec(env.single_observation_space, env.num_envs, "observations")
        if isinstance(env.single_action_space, spaces.Dict):
            raise SpaceError(f"actions must be one array, got {env.single_action_space}")
        self.action_spec = _spec(env.single_action_space, env.num_envs, "actions")
        self.final_spec = tf.nest.map_structure(
            lambda spec: tf.TensorSpec((None, *spec.shape[1:]), spec.dtype), self.observation_spec
        )
        self.started = False
        self._flat_specs: list[tf.TensorSpec] = tf.nest.flatten(self.observation_spec)
        self._stepper = Stepper(env)
        self._error: BaseException | None = None
        with tf.init_scope(), tf.device("/CPU:0"):
            self._order = tf.Variable(0, trainable=False, dtype=tf.int64)

    def reset(self, seed: int | None = None) -> None:
        """Resets all environments; environment i gets `seed + i`."""
        self.started = False
        observations, infos = self._stepper.reset(seed)
        none = np.zeros(self.env.num_envs, np.bool_)
        self.last = Transitions(
            observations, np.zeros(self.env.num_envs), none, none, none, ~none, None, infos
        )
        self.action = np.zeros(self.action_spec.shape, self.action_spec.dtype.as_numpy_dtype)
        self.started = True

    def start(self) -> None:
        """Resets the environments unless it is known where they are."""
        if not self.started:
            self.reset()

    def step(self, action: NDArray[Any]) -> Transitions:
        """Returns the transitions that a batch of actions leads to."""
        self.start()
        # Should the step raise, the environments' state is unknown: the next one resets them.
        self.started = False
        self.action = np.array(action)
        self.last = self._stepper.step(self.action.astype(self.action_spec.dtype.as_numpy_dtype))
        self.started = True
        return self.last

    def leaves(self, observations: Any) -> Leaves:
        """Returns a batch of observations as new arrays, which no later step writes into."""
        return [
            np.array(leaf, spec.dtype.as_numpy_dtype)
            for leaf, spec in zip(tf.nest.flatten(observations), self._flat_specs, strict=True)
        ]

    def final_leaves(self) -> Leaves:
        """Returns the last observations of the episodes that the last step truncated."""
        if self.last.final_observations is None:
            return self.no_leaves()
        return self.leaves(self.last.final_observations)

    def no_leaves(self) -> Leaves:
        """Returns the leaves of no observations at all."""
        return [
            np.empty((0, *spec.shape[1:]), spec.dtype.as_numpy_dtype) for spec in self._flat_specs
        ]

    def in_graph(self, function: Callable[..., Any], arguments: Any, specs: Any) -> Any:
        """Returns the outputs, as `specs`, of a function of the host in a TensorFlow graph.

        These operations run in the order of the program. What the function raises ends the
        operation, as tf.errors.UnknownError or the like; `original_errors` brings back the
        exception itself.
        """
        # TensorFlow orders what touches the same variable, but not calls of Python.
        with tf.control_dependencies([self._order.assign_add(1)]):
            outputs = self.unordered(function, arguments, specs)
        with tf.control_dependencies(tf.nest.flatten(outputs)):
            self._order.assign_add(1)
        return outputs

    def unordered(self, function: Callable[..., Any], arguments: Any, specs: Any) -> Any:
        """Returns what `in_graph` does, for operations that depend on each other's outputs."""

        def guarded(*arrays: NDArray[Any]) -> Any:
            try:
                return function(*arrays)
            except BaseException as error:
                self._error = error
                raise

        flat = tf.nest.flatten(specs)
        outputs = tf.numpy_function(guarded, arguments, [spec.dtype for spec in flat])
        for tensor, spec in zip(outputs, flat, strict=True):
            tensor.set_shape(spec.shape)
        return tf.nest.pack_sequence_as(specs, outputs)

    @contextmanager
    def original_errors(self) -> Iterator[None]:
        """Raises what the environment raised in place of TensorFlow's error."""
        self._error = None
        try:
            yield
        except tf.errors.OpError:
            error, self._error = self._error, None
            if error is None:
                raise
            raise error from None


def _spec(space: spaces.Space[Any], num_envs: int, what: str) -> Any:
    if isinstance(space, spaces.Dict):
        return {name: _spec(entry, num_envs, what) for name, entry in space.spaces.items()}
    if not isinstance(space, _ARRAYS):
        raise SpaceError(
            f"{what} of {space} have no tensor; supported are Box, Discrete, MultiDiscrete, "
            f"MultiBinary and, for observations, Dict of these"
        )
    return tf.TensorSpec((num_envs, *(space.shape or ())), tf.as_dtype(space.dtype))
