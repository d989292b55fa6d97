"""Gymnasium's three autoreset modes, one class each, one instance per environment."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import gymnasium as gym
from gymnasium.vector import AutoresetMode

StepResult = tuple[Any, Any, Any, Any, dict[str, Any]]


class Disabled:
    """A finished environment is stepped on; resets are the caller's business."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self.step = env.step
        self.reset = env.reset

    def pend(self) -> None:
        """Nothing to do: nothing is reset by itself."""


class NextStep:
    """The step after the last of an episode ignores its action and resets."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self._env_step = env.step
        self._env_reset = env.reset
        self._pending = False

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Resets by hand, after which no reset is pending."""
        result = self._env_reset(**kwargs)
        self._pending = False
        return result

    def step(self, action: Any) -> StepResult:
        """Steps, or resets with reward 0."""
        if self._pending:
            observation, info = self._env_reset()
            self._pending = False
            return observation, 0.0, False, False, info
        result = self._env_step(action)
        if result[2] or result[3]:
            self._pending = True
        return result

    def pend(self) -> None:
        """Lets the next step reset."""
        self._pending = True


class SameStep:
    """The last step of an episode returns the first observation of the next one."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self._env_step = env.step
        self._env_reset = env.reset
        self.reset = env.reset

    def step(self, action: Any) -> StepResult:
        """Steps, and resets if that was the last."""
        observation, reward, terminated, truncated, info = self._env_step(action)
        if terminated or truncated:
            # An environment may reuse its buffer, which the reset then overwrites.
            final_info = {"final_obs": deepcopy(observation), "final_info": info}
            observation, info = self._env_reset()
            info = {**final_info, **info}
        return observation, reward, terminated, truncated, info

    def pend(self) -> None:
        """Nothing to do: the reset has happened."""


Autoreset = NextStep | SameStep | Disabled

_STRATEGIES: dict[AutoresetMode, type[Autoreset]] = {
    AutoresetMode.NEXT_STEP: NextStep,
    AutoresetMode.SAME_STEP: SameStep,
    AutoresetMode.DISABLED: Disabled,
}


def make_autoreset(mode: AutoresetMode, env: gym.Env[Any, Any]) -> Autoreset:
    """Returns what steps `env` in this mode."""
    return _STRATEGIES[mode](env)
