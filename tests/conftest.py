"""Fixtures that several test files share."""

from pathlib import Path

import pytest
from cli_process import SMALL, run


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a small training was run with the command; its output is beside it."""
    folder = tmp_path_factory.mktemp("trained")
    done = run(folder, "train", "cartpole", *SMALL)
    assert done.returncode == 0, done.stderr
    (folder / "stdout").write_text(done.stdout)
    (folder / "stderr").write_text(done.stderr)
    return folder
