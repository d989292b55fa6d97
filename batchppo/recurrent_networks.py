"""Networks with memory: a recurrent cell each for policy and value, before the dense layers."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from batchppo.actions import ActionDistribution
from batchppo.architecture import Architecture
from batchppo.cell_equations import EQUATIONS
from batchppo.inputs import ACTOR_STATE, CRITIC_STATE, EPISODE_START
from batchppo.layers import LayerMaker, apply_layers, build_layers
from batchppo.networks import ActorCritic, TensorInputs
from batchppo.observations import ObservationEncoder
from batchppo.recurrence import GATES, STATES
from batchppo.through_time import run_through_time


class RecurrentActorCritic(ActorCritic):
    """From sequences of inputs and the states before them to parameters, values and states.

    Inputs are arrays of shape [S, L, ...] (S sequences of L rows). `episode_start`, shape [S, L],
    says where the state begins anew at 0.

    Args:
        encoder: what the inputs look like.
        distribution: what the parameters describe.
        architecture: layers and initial weights; its `cell` is not None.
        seed: of the initial weights.
    """

    def __init__(
        self,
        encoder: ObservationEncoder,
        distribution: ActionDistribution,
        architecture: Architecture,
        seed: int,
    ) -> None:
        super().__init__(encoder, distribution, architecture, seed)
        self._actor_front, self._actor_cell = self._memory("actor", encoder, architecture, seed)
        self._critic_front: list[Any] = []
        self._critic_cell: Cell | None = None
        if architecture.critic_cell:
            self._critic_front, self._critic_cell = self._memory(
                "critic", encoder, architecture, seed + 1
            )

    @property
    def state_size(self) -> int:
        """The length of one state of the policy."""
        return self._actor_cell.state_size

    @property
    def critic_state_size(self) -> int:
        """The length of one state of the value; 0 if it remembers nothing."""
        return 0 if self._critic_cell is None else self._critic_cell.state_size

    def features(self, inputs: TensorInputs) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns what the policy's and the value's cell read of B rows of inputs."""
        actor_features, critic_features = super().features(inputs)
        return (
            apply_layers(self._actor_front, actor_features),
            apply_layers(self._critic_front, critic_features),
        )

    def forward(self, inputs: TensorInputs) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the parameters, shape [S L, P], and the values, shape [S L], of sequences.

        The inputs hold the states before the sequences, `actor_state` and `critic_state`.
        """
        parameters, values, _ = self.sequences(inputs)
        return parameters, values

    def sequences(
        self, inputs: TensorInputs
    ) -> tuple[tf.Tensor, tf.Tensor, tuple[tf.Tensor, tf.Tensor]]:
        """Returns what `forward` does and both cells' states behind each row, [S, L, state]."""
        starts = inputs[EPISODE_START]
        rows = {name: _flat(array) for name, array in inputs.items() if name not in _PER_SEQUENCE}
        actor_features, critic_features = self.features(rows)
        shape = tf.shape(starts)
        actor_states = self._actor_cell.run(
            _unflat(actor_features, shape), inputs[ACTOR_STATE], starts
        )
        parameters = self.head(_flat(self._actor_cell.outputs(actor_states)), rows)
        if self._critic_cell is None:
            nothing = tf.zeros((shape[0], shape[1], 0))
            return parameters, self.value_head(critic_features), (actor_states, nothing)
        critic_states = self._critic_cell.run(
            _unflat(critic_features, shape), inputs[CRITIC_STATE], starts
        )
        values = self.value_head(_flat(self._critic_cell.outputs(critic_states)))
        return parameters, values, (actor_states, critic_states)

    def act(self, inputs: TensorInputs) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the parameters, [n, P], and the policy's next states, [n, state], of one step."""
        actor_features, _ = self.features(inputs)
        starts = inputs[EPISODE_START]
        state = self._actor_cell.step(
            self._actor_cell.gates(actor_features), inputs[ACTOR_STATE], starts
        )
        return self.head(self._actor_cell.outputs(state), inputs), state

    def values(self, inputs: TensorInputs) -> tf.Tensor:
        """Returns V(s), [n], of rows that follow on the value's states, `critic_state`."""
        _, critic_features = self.features(inputs)
        if self._critic_cell is None:
            return self.value_head(critic_features)
        before = inputs[CRITIC_STATE]
        gates = self._critic_cell.gates(critic_features)
        state = self._critic_cell.step(gates, before, tf.zeros(tf.shape(before)[0], tf.bool))
        return self.value_head(self._critic_cell.outputs(state))

    def _memory(
        self, part: str, encoder: ObservationEncoder, architecture: Architecture, seed: int
    ) -> tuple[list[Any], Cell]:
        """Makes a cell and the layers in front of it, and keeps their variables."""
        size = architecture.features_size(encoder)
        # A cell has two seeds of its own; other numbers for the layers in front of it.
        front = LayerMaker(
            architecture, np.random.SeedSequence([seed, 1]).generate_state(64).tolist()
        ).hidden(architecture.front)
        self.variables.update(build_layers(f"{part}_front", front, (size,)))
        inputs = (size, *architecture.front)[-1]
        cell = Cell(str(architecture.cell), inputs, architecture.recurrent_size, seed)
        self.variables.update({f"{part}_cell/{key}": v for key, v in cell.variables.items()})
        return front, cell


class Cell:
    """A recurrent cell, see `cell_equations.py` for its equations.

    Args:
        kind: "lstm" or "gru".
        inputs: how many numbers it reads.
        width: how many it puts out.
        seed: of the initial weights.

    Attributes:
        state_size: the length of a state.
        variables: `kernel` [inputs, gates], `recurrent_kernel` [width, gates], `bias` [gates].
    """

    def __init__(self, kind: str, inputs: int, width: int, seed: int) -> None:
        gates = GATES[kind] * width
        glorot = keras.initializers.GlorotUniform(seed=seed)
        orthogonal = keras.initializers.Orthogonal(seed=seed + 1)
        self._equations = EQUATIONS[kind]
        self._width = width
        self.state_size = STATES[kind] * width
        self._kernel = keras.Variable(glorot, shape=(inputs, gates), name="kernel")
        self._recurrent = keras.Variable(orthogonal, shape=(width, gates), name="recurrent_kernel")
        self._bias = keras.Variable("zeros", shape=(gates,), name="bias")
        if kind == "lstm":  # begin by remembering (Jozefowicz et al. 2015)
            forget = slice(width, 2 * width)
            bias = self._bias.numpy().copy()
            bias[forget] = 1.0
            self._bias.assign(bias)
        self.variables = {
            "kernel": self._kernel,
            "recurrent_kernel": self._recurrent,
            "bias": self._bias,
        }

    def gates(self, features: tf.Tensor) -> tf.Tensor:
        """Returns x W + b, shape [..., gates]."""
        return features @ tf.convert_to_tensor(self._kernel) + tf.convert_to_tensor(self._bias)

    def step(self, gates: tf.Tensor, state: tf.Tensor, starts: tf.Tensor) -> tf.Tensor:
        """Returns the states behind one row, [n, state]; they begin at 0 where `starts`, [n]."""
        state = tf.where(starts[:, None], 0.0, state)
        return self._equations.forward(gates, state, tf.convert_to_tensor(self._recurrent))[0]

    def run(self, features: tf.Tensor, state: tf.Tensor, starts: tf.Tensor) -> tf.Tensor:
        """Returns the states behind each row, [S, L, state], of features [S, L, inputs]."""
        gates = tf.transpose(self.gates(features), (1, 0, 2))
        kernel = tf.convert_to_tensor(self._recurrent)
        states = run_through_time(self._equations, gates, state, tf.transpose(starts), kernel)
        return tf.transpose(states, (1, 0, 2))

    def outputs(self, states: tf.Tensor) -> tf.Tensor:
        """Returns the cell's output, the first `width` numbers of its state."""
        return states[..., : self._width]


def make_network(
    encoder: ObservationEncoder,
    distribution: ActionDistribution,
    architecture: Architecture,
    seed: int,
) -> ActorCritic:
    """Returns the network of an architecture, with memory or without."""
    kind = ActorCritic if architecture.cell is None else RecurrentActorCritic
    return kind(encoder, distribution, architecture, seed)


_PER_SEQUENCE = (ACTOR_STATE, CRITIC_STATE)


def _flat(array: tf.Tensor) -> tf.Tensor:
    return tf.reshape(array, tf.concat([[-1], tf.shape(array)[2:]], axis=0))


def _unflat(rows: tf.Tensor, shape: tf.Tensor) -> tf.Tensor:
    return tf.reshape(rows, (shape[0], shape[1], rows.shape[-1]))
