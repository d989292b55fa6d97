"""Environments that cost next to nothing; importing this registers them.

Read by this project's interpreter and by the peers': nothing but Gymnasium and NumPy is imported.
"""

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete


class Images(gym.Env):
    """Frames made beforehand: a cheap environment with large observations.

    Args:
        channels_first: for libraries that would otherwise have to transpose them.
        render_mode: Gymnasium passes it; there is nothing to render.
    """

    action_space = Discrete(4)

    def __init__(self, channels_first=False, render_mode=None):
        shape = (4, 84, 84) if channels_first else (84, 84, 4)
        self.render_mode = render_mode
        self.observation_space = Box(0, 255, shape, np.uint8)
        self.frames = np.random.default_rng(0).integers(0, 256, (8, *shape), np.uint8)
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.frames[0], {}

    def step(self, action):
        self.steps += 1
        reward = float(action == self.steps % 4)
        return self.frames[self.steps % 8], reward, False, self.steps == 500, {}


class Numbers(gym.Env):
    """Observations of any size that cost nothing to make.

    Args:
        size: how many numbers an observation has.
        render_mode: Gymnasium passes it; there is nothing to render.
    """

    action_space = Discrete(2)

    def __init__(self, size=4, render_mode=None):
        self.render_mode = render_mode
        self.observation_space = Box(-np.inf, np.inf, (size,), np.float32)
        self.rows = np.random.default_rng(0).normal(size=(8, size)).astype(np.float32)
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.rows[0], {}

    def step(self, action):
        self.steps += 1
        reward = float(action == self.steps % 2)
        return self.rows[self.steps % 8], reward, False, self.steps == 200, {}


gym.register("Images-v0", entry_point=Images)
gym.register("Numbers-v0", entry_point=Numbers)
