"""A wrapper that shows how observations change."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from batchgym.spaces import require_box


class FrameDelta(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Observes the difference between an observation and the one before it.

    The first observation of an episode is all zeros: nothing has changed yet.

    Args:
        env: The environment to wrap; it observes a Box. Differences of floats keep their type,
            those of integers and of bytes are float32, so that none wraps around.

    Raises:
        TypeError: The observations are no Box.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        box = require_box(env.observation_space, type(self).__name__)
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        is_float = np.issubdtype(box.dtype, np.floating)
        self._dtype: Any = box.dtype.type if is_float else np.float32
        self._last: NDArray[Any] = np.zeros(box.shape, self._dtype)
        low: NDArray[Any] = box.low.astype(self._dtype)
        high: NDArray[Any] = box.high.astype(self._dtype)
        with np.errstate(over="ignore"):  # the widest bounds differ by more than a float holds
            self.observation_space = spaces.Box(low - high, high - low, dtype=self._dtype)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Resets, and returns zeros."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._last = np.array(observation, self._dtype)
        return np.zeros_like(self._last), info

    def step(self, action: Any) -> tuple[NDArray[Any], Any, bool, bool, dict[str, Any]]:
        """Steps, and returns what changed."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        before, self._last = self._last, np.array(observation, self._dtype)
        return self._last - before, reward, terminated, truncated, info
