"""Fixtures of the whole suite."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

RunCommand = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command() -> str:
    """Path of the installed command `batchppo`."""
    return str(Path(sys.executable).with_name("batchppo"))


@pytest.fixture
def run_command(command: str, tmp_path: Path) -> RunCommand:
    """Runs the installed command in a new process and an empty folder."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [command, *arguments],
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "100", **variables},
            stdin=subprocess.DEVNULL,
            timeout=100,
        )

    return run
