"""How a rollout's rows become the units that minibatches are dealt from.

A policy without memory learns from single rows; one with memory learns from sequences of rows
(`sequence_layout.py`). Each layout also asks the old network what it says of a rollout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from batchppo.actions import ActionDistribution
from batchppo.compilation import compiled
from batchppo.distributions import TensorDistribution
from batchppo.inputs import ACTION_MASK, Inputs, count_rows, map_inputs
from batchppo.networks import ActorCritic
from batchppo.rollout import Rollout
from batchppo.update import Batch, tensors

FloatArray = NDArray[np.float32]


class Evaluation(NamedTuple):
    """What a network says of a rollout before the update.

    Attributes:
        parameters: of the distributions, shape [T, N, P].
        log_prob: of the actions, shape [T, N].
        values: V(s_t), shape [T, N].
        next_values: V(s'_t) of what the actions led to, shape [T, N].
    """

    parameters: FloatArray
    log_prob: FloatArray
    values: FloatArray
    next_values: FloatArray


class Layout(Protocol):
    """How rows become units.

    Attributes:
        unit_rows: how many rows a unit has.
        state_size: the length of what the policy remembers; 0 if it has no memory.
    """

    unit_rows: int
    state_size: int

    def evaluate(self, rollout: Rollout) -> Evaluation:
        """Returns what the network says of a rollout."""

    def forget(self) -> None:
        """Lets the next rollout be the first one."""

    def arrange(self, rows: Batch) -> Batch:
        """Returns columns of shape [T, N, ...] as columns of units, shape [units, ...]."""

    def units(self, valid: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Returns the units that have a valid row, given which rows are, shape [T, N]."""


class RowLayout:
    """Every row is a unit.

    Args:
        network: what is trained.
        distribution: what the network's parameters describe.
        jit_compile: whether XLA compiles the evaluation.
    """

    unit_rows = 1
    state_size = 0

    def __init__(
        self, network: ActorCritic, distribution: TensorDistribution, jit_compile: bool
    ) -> None:
        self._network = network
        self._distribution = distribution
        self._evaluate = compiled(self._all_rows, jit_compile)
        self._value = compiled(network.values)

    def evaluate(self, rollout: Rollout) -> Evaluation:
        """Returns what the network says of a rollout, in one pass over all rows."""
        steps, num_envs = rollout.valid.shape
        rows = steps * num_envs
        inputs = map_inputs(lambda a: a.reshape(-1, *a.shape[2:]), rollout.inputs)
        actions = rollout.actions.reshape(rows, *rollout.actions.shape[2:])
        evaluated = self._evaluate(tensors(inputs), tf.constant(actions))
        parameters, log_prob, values = (tensor.numpy() for tensor in evaluated)
        values = values.reshape(steps + 1, num_envs)
        next_values = values[1:].copy()
        if rollout.final_inputs is not None:
            final_values = in_chunks(self._value, rollout.final_inputs, num_envs)
            next_values[rollout.truncated & rollout.valid] = final_values
        return Evaluation(
            parameters.reshape(steps, num_envs, -1),
            log_prob.reshape(steps, num_envs),
            values[:-1],
            next_values,
        )

    def forget(self) -> None:
        """Does nothing: rows stand by themselves."""

    def arrange(self, rows: Batch) -> Batch:
        """Returns all rows one behind the other."""
        arranged: Batch = tf.nest.map_structure(lambda a: a.reshape(-1, *a.shape[2:]), rows)
        return arranged

    def units(self, valid: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Returns the indices of the valid rows."""
        return np.flatnonzero(valid)

    def _all_rows(self, inputs: dict[str, tf.Tensor], actions: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Returns parameters and log-probabilities of all rows with an action, and all values."""
        parameters, values = self._network.forward(inputs)
        parameters = parameters[: tf.shape(actions)[0]]
        return parameters, self._distribution.log_prob(parameters, actions), values


def in_chunks(function: Callable[..., Any], inputs: Inputs, chunk: int) -> FloatArray:
    """Returns a function's values, shape [n], of any number n of rows, `chunk` at a time.

    The last chunk is padded, so that the function is compiled for one shape only.
    """
    count = count_rows(inputs)
    read = {name: array for name, array in inputs.items() if name != ACTION_MASK}
    padded = map_inputs(lambda a: padded_rows(a, -count % chunk), read)
    chunks = (
        map_inputs(lambda a, start=start: a[start : start + chunk], padded)
        for start in range(0, count, chunk)
    )
    values = [function(tensors(rows)).numpy() for rows in chunks]
    return np.concatenate([np.empty(0, np.float32), *values])[:count]


def padded_rows(array: NDArray[Any], padding: int) -> NDArray[Any]:
    """Returns `array` with `padding` rows of zeros behind it."""
    return np.concatenate([array, np.zeros((padding, *array.shape[1:]), array.dtype)])


def blank_rollout(
    n_steps: int, like: Inputs, distribution: ActionDistribution, state_size: int
) -> Rollout:
    """Returns a rollout of zeros, of T full steps.

    Args:
        n_steps: T.
        like: one step's inputs, arrays of shape [N, ...].
        distribution: what the actions are drawn from.
        state_size: of the policy's memory; 0 if it has none.
    """
    shape = (n_steps, count_rows(like))
    false = np.zeros(shape, np.bool_)
    return Rollout(
        inputs=map_inputs(lambda a: np.zeros((n_steps + 1, *a.shape), a.dtype), like),
        actions=np.zeros((*shape, *distribution.action_shape), distribution.action_dtype),
        rewards=np.zeros(shape),
        terminated=false,
        truncated=false,
        valid=~false,
        final_inputs=None,
        steps=n_steps,
        actor_state=np.zeros((shape[1], state_size), np.float32) if state_size else None,
        seconds={},
    )
