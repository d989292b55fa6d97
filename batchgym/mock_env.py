"""An environment that means nothing, for tests of code that uses environments."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np


class MockEnv(gym.Env[Any, Any]):
    """Observations, rewards and lengths of episodes at random, all from the seed of the reset.

    It is strict where real environments often are not: an action outside of its space, and a step
    behind the end of an episode, are errors.

    Args:
        observation_space: Where observations are drawn from.
        action_space: Where actions have to be from.
        min_steps: The fewest steps of an episode; at least 1.
        max_steps: The most.
        truncates: Whether episodes end by truncation instead of termination.

    Attributes:
        lengths: How many steps the episodes have, in order; the last one is the present one.
        steps: How many steps of the present episode were made.

    Raises:
        ValueError: The lengths make no sense.
    """

    def __init__(
        self,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        min_steps: int = 5,
        max_steps: int = 20,
        truncates: bool = False,
    ) -> None:
        if not 1 <= min_steps <= max_steps:
            raise ValueError(
                f"expected 1 <= min_steps <= max_steps, got {min_steps} and {max_steps}"
            )
        self.observation_space = observation_space
        self.action_space = action_space
        self.lengths: list[int] = []
        self.steps = 0
        self._bounds = min_steps, max_steps
        self._truncates = truncates

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode of a length that is drawn anew; there are no options."""
        del options
        super().reset(seed=seed)
        if seed is not None or not self.lengths:
            self.observation_space.seed(int(self.np_random.integers(2**31)))
        low, high = self._bounds
        self.lengths.append(int(self.np_random.integers(low, high + 1)))
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Returns a random observation and a reward between -1 and 1.

        Raises:
            ValueError: The action is not in the action space.
            RuntimeError: There is no episode, or it has ended.
        """
        if not self.lengths or self.steps == self.lengths[-1]:
            raise RuntimeError("the episode has ended, or there was none: call reset() first")
        if action not in self.action_space:
            raise ValueError(f"{action!r} is no action of {self.action_space}")
        self.steps += 1
        ended = self.steps == self.lengths[-1]
        reward = float(np.float32(self.np_random.uniform(-1.0, 1.0)))
        flags = (False, ended) if self._truncates else (ended, False)
        return self.observation_space.sample(), reward, *flags, {}
