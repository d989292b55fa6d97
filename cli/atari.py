"""Atari's environments, of the package ale-py, without what the emulator says on the screen."""

import copy
import importlib.util
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

_ENTRY_POINT = "ale_py.env:AtariEnv"


def register_atari() -> bool:
    """Register the environments, `ALE/Pong-v5` and the like; return False without the package."""
    if importlib.util.find_spec("ale_py") is None:
        return False
    import ale_py

    # It greets at the level below, when the first game is made.
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    return True


def without_greeting(spec: EnvSpec) -> EnvSpec:
    """Return a specification whose environments are silent, in worker processes too."""
    if spec.entry_point != _ENTRY_POINT:
        return spec
    silent = copy.copy(spec)
    silent.entry_point = f"{__name__}:make_silently"
    return silent


def make_silently(**arguments: Any) -> gymnasium.Env[Any, Any]:
    """Return an environment of Atari: the entry point in a worker process."""
    register_atari()
    from ale_py.env import AtariEnv

    env: gymnasium.Env[Any, Any] = AtariEnv(**arguments)
    return env
