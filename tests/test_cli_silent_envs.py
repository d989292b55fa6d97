"""Emulators do not talk to the screen, in no process; what a simulation warns of is passed on."""

import importlib.machinery
import pickle
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import cloudpickle
import gymnasium
import pytest
from batchppo_cli.silence import register_atari, silence, silent_in_workers
from gymnasium.envs.registration import EnvSpec


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


def test_atari_is_silent_before_a_game_is_made(said: list[str]) -> None:
    spec = EnvSpec("ALE/Pong-v5", entry_point="ale_py.env:AtariEnv", kwargs={"game": "pong"})
    silent = pickle.loads(cloudpickle.dumps(silent_in_workers(spec)))
    assert (silent.id, silent.kwargs) == (spec.id, spec.kwargs)
    silent.entry_point(**silent.kwargs)
    silence(spec)
    assert said == ["be silent", "made {'game': 'pong'}", "be silent"]


def test_mujoco_says_nothing_of_gymnasiums_models_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    import mujoco

    monkeypatch.chdir(tmp_path)
    before = mujoco.get_mju_user_warning()
    gymnasium.make(silent_in_workers(gymnasium.spec("HalfCheetah-v5"))).close()
    assert capfd.readouterr().err == ""
    assert list(tmp_path.iterdir()) == []
    mujoco.get_mju_user_warning()("the simulation is unstable")
    assert capfd.readouterr().err == "MuJoCo: the simulation is unstable\n"
    mujoco.set_mju_user_warning(before)


def test_other_environments_stay_what_they_are() -> None:
    for entry_point in ("somewhere:Thing", SimpleNamespace):
        spec = EnvSpec("Thing-v0", entry_point=entry_point)
        assert silent_in_workers(spec) is spec
        silence(spec)


def test_the_package_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert not register_atari()
