"""A wrapper that shows observations of the past beside the present one."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from batchgym.spaces import require_box


class FrameHistory(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Observes the steps that lie `past_indices` back, in that order.

    Before the beginning of an episode there is its first observation. For all of the last n steps
    `gymnasium.wrappers.FrameStackObservation` does the same, but the oldest first.

    Args:
        env: The environment to wrap; it observes a Box.
        past_indices: How many steps each frame lies back, such as `[0, 1, 4]`; 0 is the present
            one and has to be among them.
        flatten: Whether frames are joined along their first axis, instead of stacked on a new one.

    Raises:
        TypeError: The observations are no Box.
        ValueError: Indices that are negative, no whole numbers, or without 0; or `flatten` for
            observations that are single numbers.
    """

    def __init__(
        self, env: gym.Env[Any, Any], past_indices: Sequence[int], flatten: bool = False
    ) -> None:
        box = require_box(env.observation_space, type(self).__name__)
        indices = [_whole(index) for index in past_indices]
        if 0 not in indices or min(indices) < 0:
            raise ValueError(
                f"past_indices must be at least 0 and have 0 (the present) among them, "
                f"got {list(past_indices)!r}"
            )
        if flatten and box.shape == ():
            raise ValueError(f"flatten=True needs observations with an axis to join, got {box}")
        RecordConstructorArgs.__init__(self, past_indices=list(past_indices), flatten=flatten)
        gym.Wrapper.__init__(self, env)
        self._indices = indices
        self._join = np.concatenate if flatten else np.stack
        self._frames: deque[NDArray[Any]] = deque(maxlen=max(indices) + 1)
        low, high = (self._join([bound] * len(indices)) for bound in (box.low, box.high))
        self.observation_space = spaces.Box(low, high, dtype=box.dtype.type)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Resets, and returns the first observation in the place of all."""
        observation, info = self.env.reset(seed=seed, options=options)
        first = np.array(observation)
        self._frames.extend([first] * (max(self._indices) + 1))
        return self._select(), info

    def step(self, action: Any) -> tuple[NDArray[Any], Any, bool, bool, dict[str, Any]]:
        """Steps, and returns the frames that are asked for."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._frames.append(np.array(observation))  # a copy: environments may reuse theirs
        return self._select(), reward, terminated, truncated, info

    def _select(self) -> NDArray[Any]:
        return self._join([self._frames[-1 - index] for index in self._indices])


def _whole(index: Any) -> int:
    if isinstance(index, bool) or int(index) != index:
        raise ValueError(f"past_indices must be whole numbers, got {index!r}")
    return int(index)
