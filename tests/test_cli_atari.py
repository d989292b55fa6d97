"""Atari's emulator does not greet on the screen, in no process."""

import importlib.machinery
import sys
from types import ModuleType, SimpleNamespace

import pytest
from batchppo_cli.atari import make_silently, register_atari, without_greeting
from gymnasium.envs.registration import EnvSpec, load_env_creator


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a package that stands for ale-py was told, in order."""
    said: list[str] = []
    package, module = ModuleType("ale_py"), ModuleType("ale_py.env")
    package.__spec__ = importlib.machinery.ModuleSpec("ale_py", None)
    package.ALEInterface = SimpleNamespace(setLoggerMode=said.append)
    package.LoggerMode = SimpleNamespace(Error="be silent")
    module.AtariEnv = lambda **arguments: said.append(f"made {arguments}")
    monkeypatch.setitem(sys.modules, "ale_py", package)
    monkeypatch.setitem(sys.modules, "ale_py.env", module)
    return said


def test_it_is_silent_before_a_game_is_made(said: list[str]) -> None:
    spec = EnvSpec("ALE/Pong-v5", entry_point="ale_py.env:AtariEnv", kwargs={"game": "pong"})
    silent = without_greeting(spec)
    assert (silent.id, silent.kwargs) == (spec.id, spec.kwargs)
    load_env_creator(silent.entry_point)(**silent.kwargs)
    assert said == ["be silent", "made {'game': 'pong'}"]
    assert load_env_creator(silent.entry_point) is make_silently


def test_other_environments_stay_what_they_are() -> None:
    spec = EnvSpec("Thing-v0", entry_point="somewhere:Thing")
    assert without_greeting(spec) is spec


def test_the_package_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert not register_atari()
