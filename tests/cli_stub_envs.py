"""Environments for tests of the command line, registered on import."""

from typing import Any

import gymnasium
import numpy as np


class Breaks(gymnasium.Env[np.ndarray, int]):
    """Raises in its 300th step."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self) -> None:
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action: int) -> Any:
        self.steps += 1
        if self.steps == 300:
            raise RuntimeError("the robot fell into the pond")
        return np.zeros(2, np.float32), 1.0, self.steps % 10 == 0, False, {}


class NotANumber(Breaks):
    """Gives NaN as its 300th reward."""

    def step(self, action: int) -> Any:
        self.steps += 1
        reward = float("nan") if self.steps == 300 else 1.0
        return np.zeros(2, np.float32), reward, self.steps % 10 == 0, False, {}


gymnasium.register("Breaks-v0", entry_point=Breaks)
gymnasium.register("NotANumber-v0", entry_point=NotANumber)
