"""Small environments whose every number can be foretold."""

from __future__ import annotations

import gymnasium
import numpy as np
from gymnasium import spaces


class CountingEnv(gymnasium.Env):
    """Observes (identity, episode, step); episode k of environment i lasts 2 + (i + k) % 4 steps.

    Episodes of even number terminate, those of odd number are truncated. The reward of a step is
    100 * identity + 10 * episode + step, so that every transition can be told from every other.
    """

    observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, identity=0):
        self.identity = identity
        self.episode = -1
        self.count = 0

    def _observation(self):
        return np.array([self.identity, self.episode, self.count], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode += 1
        self.count = 0
        return self._observation(), {}

    def step(self, action):
        self.count += 1
        done = self.count == 2 + (self.identity + self.episode) % 4
        reward = 100.0 * self.identity + 10.0 * self.episode + self.count
        even = self.episode % 2 == 0
        return self._observation(), reward, done and even, done and not even, {}


class TargetEnv(gymnasium.Env):
    """One step an episode: the reward is minus the squared distance of the action from 0.5."""

    observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), -float((action[0] - 0.5) ** 2), True, False, {}


class CueEnv(gymnasium.Env):
    """Shows one of three cues (a Discrete that begins at 5); the right action is the cue's."""

    observation_space = spaces.Discrete(3, start=5)
    action_space = spaces.Discrete(3, start=-1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cue = int(self.np_random.integers(3))
        self.steps = 0
        return 5 + self.cue, {}

    def step(self, action):
        reward = float(action + 1 == self.cue)
        self.cue = int(self.np_random.integers(3))
        self.steps += 1
        return 5 + self.cue, reward, False, self.steps == 8, {}


class BrokenEnv(gymnasium.Env):
    """Returns `value` in its observation or reward from step `at` on."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, where="observation", value=np.nan, at=5):
        self.where, self.value, self.at = where, value, at
        self.count = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.count += 1
        broken = self.count >= self.at
        observation = np.zeros(2, np.float32)
        reward = 0.0
        if broken and self.where == "observation":
            observation[1] = self.value
        if broken and self.where == "reward":
            reward = self.value
        if broken and self.where == "exception":
            raise RuntimeError("the motor is on fire")
        return observation, reward, False, self.count >= 20, {}
