"""Environments without what their emulators say on the screen that is no news to their user.

Atari's greets when the first game is made. MuJoCo finds fault with the models that Gymnasium
brings, and writes that into a file of the current folder too.
"""

import copy
import functools
import importlib.util
import sys
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, load_env_creator


def register_atari() -> bool:
    """Register `ALE/Pong-v5` and the like; return False if their package is not installed."""
    if importlib.util.find_spec("ale_py") is None:
        return False
    _silence_atari()  # to import it is enough
    return True


def silence(spec: EnvSpec) -> None:
    """Let environments that are made of `spec` be silent, in this process."""
    _silencer(spec.entry_point)()


def silent_in_workers(spec: EnvSpec) -> EnvSpec:
    """Return a specification whose environments are silent in whatever process they are made."""
    entry_point = spec.entry_point
    if not isinstance(entry_point, str) or _silencer(entry_point) is _do_nothing:
        return spec
    silent = copy.copy(spec)
    silent.entry_point = functools.partial(_make_silently, entry_point)
    return silent


def _make_silently(entry_point: str, **arguments: Any) -> gymnasium.Env[Any, Any]:
    _silencer(entry_point)()
    make: Any = load_env_creator(entry_point)
    env: gymnasium.Env[Any, Any] = make(**arguments)
    return env


def _silence_atari() -> None:
    import ale_py

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)


def _silence_mujoco() -> None:
    import mujoco

    mujoco.set_mju_user_warning(_pass_on)


def _pass_on(warning: str) -> None:
    """Print a warning of MuJoCo, unless it is about how a model is written."""
    if "deprecated" not in warning:
        sys.stderr.write(f"MuJoCo: {warning}\n")


def _do_nothing() -> None:
    return


_SILENCERS: Mapping[str, Callable[[], None]] = {
    "ale_py.": _silence_atari,
    "gymnasium.envs.mujoco": _silence_mujoco,
}


def _silencer(entry_point: object) -> Callable[[], None]:
    for beginning, silencer in _SILENCERS.items():
        if isinstance(entry_point, str) and entry_point.startswith(beginning):
            return silencer
    return _do_nothing
