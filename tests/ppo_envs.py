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


class SidesEnv(TargetEnv):
    """Shows a side; the best action is 0.5 on that side."""

    observation_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.side = int(self.np_random.integers(2))
        return self.side, {}

    def step(self, action):
        target = 0.5 if self.side else -0.5
        return self.side, -float((action[0] - target) ** 2), True, False, {}


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


class ChoicesEnv(gymnasium.Env):
    """One step an episode: a point for each of three choices that is right."""

    observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = spaces.MultiDiscrete([2, 3, 4], start=[0, 1, 0])
    right = (1, 3, 2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), float(np.sum(action == self.right)), True, False, {}


class SwitchesEnv(ChoicesEnv):
    """One step an episode: a point for each of four switches that is right."""

    action_space = spaces.MultiBinary(4)
    right = (1, 0, 0, 1)


class EdgeEnv(TargetEnv):
    """The best action is close to an end of its range, where clipping has no gradient."""

    action_space = spaces.Box(0.0, 10.0, (1,), np.float32)

    def step(self, action):
        return np.zeros(2, np.float32), -abs(float(action[0]) - 9.0), True, False, {}


class DictCueEnv(gymnasium.Env):
    """The right action is `a` if `use_a`, else `b`."""

    observation_space = spaces.Dict(
        a=spaces.Discrete(3), b=spaces.Box(0.0, 2.0, (1,), np.float32), use_a=spaces.MultiBinary(1)
    )
    action_space = spaces.Discrete(3)

    def _draw(self):
        self.a, half, self.use_a = (int(self.np_random.integers(n)) for n in (3, 2, 2))
        self.b = 2 * half
        b = np.array([self.b], np.float32)
        return {"a": self.a, "b": b, "use_a": np.array([self.use_a], np.int8)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._draw(), {}

    def step(self, action):
        reward = float(action == (self.a if self.use_a else self.b))
        self.steps += 1
        return self._draw(), reward, False, self.steps == 8, {}


class PictureEnv(gymnasium.Env):
    """A bright square shows in one of four corners; the right action is the corner."""

    observation_space = spaces.Box(0, 255, (36, 36, 1), np.uint8)
    action_space = spaces.Discrete(4)

    def _draw(self):
        self.corner = int(self.np_random.integers(4))
        picture = np.zeros((36, 36, 1), np.uint8)
        y, x = 18 * (self.corner // 2), 18 * (self.corner % 2)
        picture[y : y + 18, x : x + 18] = 255
        return picture

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._draw(), {}

    def step(self, action):
        reward = float(action == self.corner)
        self.steps += 1
        return self._draw(), reward, False, self.steps == 8, {}


class PictureAndWordEnv(PictureEnv):
    """The picture in a Dict, with a word that says to take the first action whatever it shows."""

    observation_space = spaces.Dict(picture=PictureEnv.observation_space, word=spaces.Discrete(2))

    def _draw(self):
        picture = super()._draw()
        word = int(self.np_random.integers(2))
        if word:
            self.corner = 0
        return {"picture": picture, "word": word}


class RecallEnv(gymnasium.Env):
    """Shows a cue once, asks for it four steps later: only memory helps."""

    observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cue = int(self.np_random.integers(2))
        self.steps = 0
        return np.array([2 * self.cue - 1, 0], np.float32), {}

    def step(self, action):
        self.steps += 1
        asks = self.steps == 4
        if self.steps == 5:
            return np.zeros(2, np.float32), float(action == self.cue), True, False, {}
        return np.array([0, float(asks)], np.float32), 0.0, False, False, {}


class MaskedEnv(gymnasium.Env):
    """One of 40 doors is open and shown by the mask alone; a closed one ends the episode."""

    observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = spaces.Discrete(40)
    in_observation = False

    def _draw(self):
        self.open = int(self.np_random.integers(40))
        mask = np.zeros(40, np.int8)
        mask[self.open] = 1
        return np.zeros(1, np.float32), mask

    def _show(self):
        vector, mask = self._draw()
        if self.in_observation:
            return {"state": vector, "action_mask": mask}, {}
        return vector, {"action_mask": mask}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._show()

    def step(self, action):
        right = action == self.open
        self.steps += 1
        observation, info = self._show()
        return observation, float(right), not right, self.steps == 5, info


class MaskedDictEnv(MaskedEnv):
    """The mask is part of a Dict observation."""

    observation_space = spaces.Dict(
        state=MaskedEnv.observation_space, action_mask=spaces.MultiBinary(40)
    )
    in_observation = True
