"""A policy that acts: encoder, normalizer, network and distribution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from batchppo.actions import ActionDistribution, StateDependentNoise
from batchppo.all_finite import all_finite
from batchppo.errors import NonFiniteError
from batchppo.inputs import ACTION_MASK, EPISODE_START, VECTOR, Inputs, count_rows
from batchppo.masks import FORBIDDEN, as_masks
from batchppo.normalization import ObservationNormalizer
from batchppo.observations import ObservationEncoder

FloatArray = NDArray[np.floating]
State: TypeAlias = NDArray[np.float32] | None


class PolicyNetwork(Protocol):
    """From one step's normalized inputs, and what is remembered, to distribution parameters."""

    @property
    def state_size(self) -> int:
        """The length of a state; 0 for a network that remembers nothing."""

    def __call__(self, inputs: Inputs, state: State) -> tuple[FloatArray, State]:
        """Returns the parameters, shape [n, parameters], and the next states."""


class Policy:
    """Encoder, normalizer, network and distribution: from observations to actions.

    Args:
        encoder: turns raw observations into rows of numbers.
        normalizer: scales the rows; None for rows as they are.
        distribution: from parameters to actions.
        rng: where `predict` draws its noise from.
        metadata: what the model file says about the model; empty for a policy in training.

    Attributes:
        network: from rows to distribution parameters; set anew after every update.
    """

    network: PolicyNetwork

    def __init__(
        self,
        encoder: ObservationEncoder,
        normalizer: ObservationNormalizer | None,
        distribution: ActionDistribution,
        rng: np.random.Generator,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.encoder = encoder
        self.normalizer = normalizer
        self.distribution = distribution
        self.metadata = metadata or {}
        self._rng = rng
        self._last_noise: FloatArray | None = None

    @property
    def observation_space(self) -> Any:
        """The space of one observation."""
        return self.encoder.space

    @property
    def action_space(self) -> Any:
        """The space of one action."""
        return self.distribution.space

    def normalize(self, inputs: Inputs) -> Inputs:
        """Returns encoded inputs as the network reads them, with `vector` in float32."""
        if VECTOR not in inputs:
            return inputs
        vector = inputs[VECTOR]
        if self.normalizer is None:
            return {**inputs, VECTOR: vector.astype(np.float32, copy=False)}
        return {**inputs, VECTOR: self.normalizer.normalize(vector)}

    def parameters(
        self, inputs: Inputs, state: State = None, network: PolicyNetwork | None = None
    ) -> tuple[FloatArray, State]:
        """Returns the distributions' parameters, shape [n, parameters], and the next states.

        Args:
            inputs: normalized inputs of n rows.
            state: the states before them; None for 0.
            network: what computes the same as the policy's own network, in its place.
        """
        parameters, state = (network or self.network)(inputs, state)
        mask = inputs.get(ACTION_MASK)
        if mask is not None:
            parameters = np.where(mask, parameters, np.float32(FORBIDDEN))
        return parameters, state

    def sample(
        self,
        inputs: Inputs,
        noise: FloatArray,
        state: State = None,
        network: PolicyNetwork | None = None,
    ) -> tuple[NDArray[Any], State]:
        """Returns actions (as stored for learning) for normalized inputs and noise, and states."""
        parameters, state = self.parameters(inputs, state, network)
        return self.distribution.sample(parameters, noise), state

    def predict(
        self,
        observation: Any,
        state: State = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_masks: Any = None,
    ) -> tuple[Any, State]:
        """Returns the action for an observation, or the actions for a batch.

        Args:
            observation: one observation of the space, or a batch with one leading axis of any
                length.
            state: what the last call returned, for a policy with memory; None to begin.
            episode_start: where an episode begins, shape [] or [n], so that a policy with memory
                forgets what was before, and state-dependent noise is drawn anew; None for nowhere
                (and new noise in every call).
            deterministic: the most likely action instead of a random one.
            action_masks: which choices are allowed, shape [choices] or [n, choices]; None for the
                observation's own `action_mask`, or else for all.

        Returns:
            The action, as the environment takes it, with a leading axis if the observation had
            one; and the state for the next call, shape [n, state], None for a policy without
            memory.

        Raises:
            SpaceError: the observation or the masks do not fit the spaces.
            NonFiniteError: the network puts out NaN or infinity.
            ValueError: a state that does not fit.
        """
        batch, is_single = self.encoder.as_batch(observation)
        inputs = self.normalize(self.encoder.encode(batch))
        rows = count_rows(inputs)
        self._require_state(state, rows)
        if self.network.state_size:
            inputs[EPISODE_START] = _starts(episode_start, rows)
        if action_masks is not None:
            masks = as_masks(action_masks, rows, self.distribution)
            inputs = {**inputs, ACTION_MASK: masks}
        parameters, state = self.parameters(inputs, state)
        if not all_finite(parameters):
            raise NonFiniteError(
                "the policy network puts out NaN or infinity: its weights are not finite, or the "
                "observation is far outside of what it was trained on"
            )
        if deterministic:
            actions = self.distribution.mode(parameters)
        else:
            noise = self._noise(rows, episode_start)
            actions = self.distribution.sample(parameters, noise)
        chosen = self.distribution.to_environment(actions)
        return (chosen[0] if is_single else chosen), state

    def _noise(self, rows: int, episode_start: Any) -> FloatArray:
        """Returns noise for `predict`; state-dependent noise lasts until an episode's start."""
        drawn = self.distribution.draw_noise(self._rng, (rows,))
        if episode_start is not None and isinstance(self.distribution, StateDependentNoise):
            keep = ~_starts(episode_start, rows)
            if self._last_noise is not None and self._last_noise.shape == drawn.shape:
                drawn[keep] = self._last_noise[keep]
            self._last_noise = drawn
        return drawn

    def _require_state(self, state: State, rows: int) -> None:
        if state is None:
            return
        size = self.network.state_size
        if not size:
            raise ValueError(f"this policy remembers nothing, but got a state of {type(state)}")
        if np.shape(state) != (rows, size):
            raise ValueError(
                f"state has shape {np.shape(state)}, expected {(rows, size)}; pass what the last "
                f"call returned for the same number of observations, or None to begin"
            )


def _starts(episode_start: Any, rows: int) -> NDArray[np.bool_]:
    if episode_start is None:
        return np.zeros(rows, np.bool_)
    starts = np.asarray(episode_start, np.bool_).ravel()
    if len(starts) not in (1, rows):
        raise ValueError(f"episode_start has {len(starts)} entries, expected {rows}")
    return np.broadcast_to(starts, (rows,))
