"""A policy that means nothing: a baseline, and a stand-in for an agent in tests."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from gymnasium import Space

from batchppo.inputs import count_rows
from batchppo.observations import ObservationEncoder


class RandomPolicy:
    """Draws actions from their space, whatever it sees; takes an agent's place where one acts.

    Args:
        observation_space: the space of one observation, by which a batch is told from a single one.
        action_space: the space of one action.
        seed: of the actions; None for a fresh one.

    Raises:
        SpaceError: observations of a kind that agents do not read either.
    """

    def __init__(
        self, observation_space: Space[Any], action_space: Space[Any], seed: int | None = None
    ) -> None:
        self.observation_space = observation_space
        self.action_space = action_space
        self._encoder = ObservationEncoder(observation_space)
        # A copy: the caller's own draws from the space stay as they are.
        self._actions = copy.deepcopy(action_space)
        self._actions.seed(seed)

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Any, None]:
        """Returns a random action, or one for each observation of a batch, and no state.

        Args:
            observation: one observation of the space, or a batch with one leading axis.
            state: not looked at, like the next two; here so that all policies are called alike.
            episode_start: where an episode begins.
            deterministic: no action is more likely than another, so they are random either way.

        Raises:
            SpaceError: the observation does not fit the space.
        """
        del state, episode_start, deterministic
        batch, is_single = self._encoder.as_batch(observation)
        rows = count_rows(self._encoder.encode(batch))
        actions = np.stack([self._actions.sample() for _ in range(rows)])
        return (actions[0] if is_single else actions), None
