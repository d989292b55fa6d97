"""Rollouts as sequences, for policies with memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from batchppo.compilation import compiled
from batchppo.distributions import TensorDistribution
from batchppo.inputs import ACTOR_STATE, CRITIC_STATE, map_inputs
from batchppo.layout import Evaluation, in_chunks, padded_rows
from batchppo.recurrent_networks import RecurrentActorCritic
from batchppo.rollout import Rollout
from batchppo.update import Batch, tensors


class SequenceLayout:
    """Every unit is a sequence of `length` rows of one environment, with the states before it.

    The states are those that the network had when the rollout was evaluated, just before the
    update; episodes may end inside of a sequence. Where T is no multiple of the length, the last
    sequences are padded with rows that do not count.

    Args:
        network: what is trained.
        distribution: what the network's parameters describe.
        length: rows per sequence.
    """

    def __init__(
        self, network: RecurrentActorCritic, distribution: TensorDistribution, length: int
    ) -> None:
        self.unit_rows = length
        self.state_size = network.state_size
        self._network = network
        self._distribution = distribution
        self._evaluate = compiled(self._whole_rollout)
        self._value = compiled(network.values)
        self._critic_state: NDArray[np.float32] | None = None
        self._states: dict[str, NDArray[np.float32]] = {}

    def evaluate(self, rollout: Rollout) -> Evaluation:
        """Returns what the network says of a rollout, in one pass from its start to its end."""
        num_envs = rollout.valid.shape[1]
        if self._critic_state is None or len(self._critic_state) != num_envs:
            self._critic_state = np.zeros((num_envs, self._network.critic_state_size), np.float32)
        if rollout.actor_state is None:
            raise ValueError("the rollout was made by a policy without memory")
        before = {ACTOR_STATE: rollout.actor_state, CRITIC_STATE: self._critic_state}
        sequences = map_inputs(_env_major, rollout.inputs)
        evaluated = self._evaluate(
            tensors({**sequences, **before}), tf.constant(_env_major(rollout.actions))
        )
        parameters, log_prob, values, *states = (_env_major(t.numpy()) for t in evaluated)
        # From the states behind each row to those before it, [T + 2, N, state].
        self._states = {
            name: np.concatenate([first[None], behind])
            for (name, first), behind in zip(before.items(), states, strict=True)
        }
        self._critic_state = self._states[CRITIC_STATE][rollout.steps]
        next_values = values[1:].copy()
        if rollout.final_inputs is not None:
            next_values[rollout.truncated & rollout.valid] = self._final_values(rollout)
        return Evaluation(parameters, log_prob, values[:-1], next_values)

    def arrange(self, rows: Batch) -> Batch:
        """Returns the rows as sequences, shape [sequences, length, ...], with their states."""
        batch: Batch = tf.nest.map_structure(self._sequences, rows)
        starts = range(0, rows.weights.shape[0], self.unit_rows)
        states = {
            name: np.concatenate([states[t] for t in starts])
            for name, states in self._states.items()
        }
        return batch._replace(inputs={**batch.inputs, **states})

    def units(self, valid: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Returns the indices of the sequences with a valid row."""
        return np.flatnonzero(self._sequences(valid).any(axis=1))

    def forget(self) -> None:
        """Lets the value remember nothing."""
        self._critic_state = None

    def _sequences(self, column: NDArray[Any]) -> NDArray[Any]:
        """Returns a column [T, N, ...] as [T / length * N, length, ...], padded with zeros."""
        padded = padded_rows(column, -len(column) % self.unit_rows)
        cut = padded.reshape(-1, self.unit_rows, *column.shape[1:])
        return cut.swapaxes(1, 2).reshape(-1, self.unit_rows, *column.shape[2:])

    def _final_values(self, rollout: Rollout) -> NDArray[np.float32]:
        """Returns V of the truncated episodes' last observations, given what went before."""
        t, env = np.nonzero(rollout.truncated & rollout.valid)
        states = self._states[CRITIC_STATE][t + 1, env]
        inputs = {**(rollout.final_inputs or {}), CRITIC_STATE: states}
        return in_chunks(self._value, inputs, chunk=rollout.valid.shape[1])

    def _whole_rollout(
        self, inputs: dict[str, tf.Tensor], actions: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        parameters, values, states = self._network.sequences(inputs)
        num_envs, steps = tf.shape(actions)[0], tf.shape(actions)[1]
        parameters = tf.reshape(parameters, (num_envs, steps + 1, parameters.shape[-1]))[:, :-1]
        rows = tf.reshape(parameters, (-1, parameters.shape[-1]))
        chosen = tf.reshape(actions, (-1, *actions.shape[2:]))
        log_prob = tf.reshape(self._distribution.log_prob(rows, chosen), (num_envs, steps))
        return parameters, log_prob, tf.reshape(values, (num_envs, steps + 1)), *states


def _env_major(column: NDArray[Any]) -> NDArray[Any]:
    """Returns [T, N, ...] as [N, T, ...], and the other way round."""
    return np.ascontiguousarray(column.swapaxes(0, 1))
