"""A wrapper that begins episodes with random actions."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs


class RandomStart(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Plays between 0 and `max_steps` random actions after each reset.

    Episodes then begin in many states, as with the random no-ops of Atari (Mnih et al. 2015). The
    rewards of these steps belong to no episode. If the environment ends within them, it is reset
    and as many are drawn anew.

    The actions come from a generator of the wrapper's own: they follow from the seed of the reset,
    and neither the environment's random numbers nor those of its action space change.

    Args:
        env: The environment to wrap.
        max_steps: The most random actions; at least 0.

    Raises:
        ValueError: `max_steps` is no whole number of at least 0.
    """

    def __init__(self, env: gym.Env[Any, Any], max_steps: int) -> None:
        if isinstance(max_steps, bool) or int(max_steps) != max_steps or max_steps < 0:
            raise ValueError(f"max_steps must be a whole number of at least 0, got {max_steps!r}")
        RecordConstructorArgs.__init__(self, max_steps=max_steps)
        gym.Wrapper.__init__(self, env)
        self._max_steps = int(max_steps)
        self._actions = copy.deepcopy(env.action_space)
        self._generator = np.random.default_rng()
        self._seed_actions()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Resets, plays random actions, and returns what was observed last.

        Args:
            seed: Of the environment, and of the random actions; None to go on with both.
            options: Of the environment.
        """
        if seed is not None:
            # Two numbers, so that the stream is not the one that the environment makes of `seed`.
            self._generator = np.random.default_rng([seed, 1])
            self._seed_actions()
        observation, info = self.env.reset(seed=seed, options=options)
        left = self._draw_steps()
        while left:
            observation, _, terminated, truncated, info = self.env.step(self._actions.sample())
            left -= 1
            if terminated or truncated:
                observation, info = self.env.reset(options=options)
                left = self._draw_steps()
        return observation, info

    def _draw_steps(self) -> int:
        return int(self._generator.integers(self._max_steps + 1))

    def _seed_actions(self) -> None:
        self._actions.seed(int(self._generator.integers(2**31)))
