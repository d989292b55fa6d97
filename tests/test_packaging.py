"""Extras, versions, and the script that sets up .venv."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from batchppo_cli import extras
from batchppo_cli.errors import CommandFailed

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with nothing in it but a project without dependencies."""
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "nothing"\nversion = "1"\n'
        "[project.optional-dependencies]\nrender = []\ndev = []\n"
        "[tool.setuptools]\npackages = []\n"
    )
    return tmp_path


def set_up(checkout: Path, extra: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", str(checkout / ".ci" / "venv"), extra],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )


def test_the_version_is_in_the_changelog() -> None:
    version = importlib.metadata.version("batchppo")
    assert version == PROJECT["version"]
    assert re.search(rf"^## \[?{re.escape(version)}", (ROOT / "CHANGELOG.md").read_text(), re.M)


def test_every_extra_that_an_error_names_exists() -> None:
    assert set(extras.MODULES) <= set(PROJECT["optional-dependencies"])


def test_a_missing_extra_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(extras.MODULES, "box2d", ("a_module_that_does_not_exist",))
    with pytest.raises(CommandFailed) as caught:
        extras.require_extra("box2d", "LunarLander-v3")
    assert caught.value.format_message() == (
        'LunarLander-v3 needs a_module_that_does_not_exist: pip install "batchppo[box2d]"'
    )


def test_without_python_the_set_up_says_what_to_install(checkout: Path) -> None:
    tools = checkout / "bin"
    tools.mkdir()
    for tool in ("dirname", "cksum", "cat", "head", "tail", "grep"):
        (tools / tool).symlink_to(shutil.which(tool) or "")
    done = set_up(checkout, "render", PATH=str(tools))
    assert done.returncode == 1
    assert "No Python of version 3.11 or newer was found" in done.stderr


def test_a_python_that_is_named_must_do(checkout: Path) -> None:
    done = set_up(checkout, "render", PYTHON="/bin/false")
    assert done.returncode == 1
    assert "PYTHON=/bin/false is not a Python of version 3.11 or newer" in done.stderr


def test_make_without_a_target_explains_itself(checkout: Path) -> None:
    done = subprocess.run(["make"], cwd=checkout, capture_output=True, text=True, check=True)
    for target in ("train", "test", "test-slow", "lint", "format", "wheel-check"):
        assert re.search(rf"^  {target} +\w", done.stdout, re.M)


@pytest.mark.slow
def test_the_set_up_mends_what_is_broken(checkout: Path) -> None:
    assert "Making .venv" in set_up(checkout, "render").stderr
    again = set_up(checkout, "render")
    assert (again.returncode, again.stderr) == (0, "")

    pyproject = checkout / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().replace('"1"', '"2"'))
    changed = set_up(checkout, "dev").stderr
    assert "Installing batchppo[dev]" in changed
    assert "Making" not in changed
    assert set_up(checkout, "render").stderr == "", "dev has all that render has"

    (checkout / ".venv" / "unfinished").touch()
    assert "Making .venv" in set_up(checkout, "dev").stderr

    moved = checkout.with_name("moved")
    checkout.rename(moved)
    assert "made in another folder" in set_up(moved, "dev").stderr
    assert set_up(moved, "dev").stderr == ""
