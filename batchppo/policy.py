"""A policy that acts: encoder, normalizer, network and distribution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from batchppo.actions import ActionDistribution
from batchppo.errors import NonFiniteError
from batchppo.inputs import ACTION_MASK, VECTOR, Inputs, count_rows
from batchppo.masks import FORBIDDEN, as_masks
from batchppo.normalization import ObservationNormalizer
from batchppo.observations import ObservationEncoder

FloatArray = NDArray[np.floating]
PolicyNetwork: TypeAlias = Callable[[Inputs], FloatArray]


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

    def parameters(self, inputs: Inputs) -> FloatArray:
        """Returns the distributions' parameters for normalized inputs, shape [n, parameters]."""
        parameters = self.network(inputs)
        mask = inputs.get(ACTION_MASK)
        return parameters if mask is None else np.where(mask, parameters, np.float32(FORBIDDEN))

    def sample(self, inputs: Inputs, noise: FloatArray) -> NDArray[Any]:
        """Returns actions (as stored for learning) for normalized inputs and noise."""
        return self.distribution.sample(self.parameters(inputs), noise)

    def predict(
        self,
        observation: Any,
        state: None = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_masks: Any = None,
    ) -> tuple[Any, None]:
        """Returns the action for an observation, or the actions for a batch.

        Args:
            observation: one observation of the space, or a batch with one leading axis of any
                length.
            state: None; this policy carries no state.
            episode_start: not needed by a policy without state; accepted so that one evaluation
                loop serves every policy.
            deterministic: the most likely action instead of a random one.
            action_masks: which choices are allowed, shape [choices] or [n, choices]; None for the
                observation's own `action_mask`, or else for all.

        Returns:
            The action, as the environment takes it, with a leading axis if the observation had
            one; and the state for the next call, always None here.

        Raises:
            SpaceError: the observation or the masks do not fit the spaces.
            NonFiniteError: the network puts out NaN or infinity.
            ValueError: a state was given.
        """
        del episode_start
        if state is not None:
            raise ValueError(f"this policy carries no state, got {type(state).__name__}")
        batch, is_single = self.encoder.as_batch(observation)
        inputs = self.normalize(self.encoder.encode(batch))
        if action_masks is not None:
            masks = as_masks(action_masks, count_rows(inputs), self.distribution)
            inputs = {**inputs, ACTION_MASK: masks}
        parameters = self.parameters(inputs)
        if not np.isfinite(parameters).all():
            raise NonFiniteError(
                "the policy network puts out NaN or infinity: its weights are not finite, or the "
                "observation is far outside of what it was trained on"
            )
        if deterministic:
            actions = self.distribution.mode(parameters)
        else:
            noise = self.distribution.draw_noise(self._rng, (len(parameters),))
            actions = self.distribution.sample(parameters, noise)
        chosen = self.distribution.to_environment(actions)
        return (chosen[0] if is_single else chosen), None
