"""Where a run comes from: the command, the versions, the state of the sources."""

import datetime
import importlib.metadata
import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

_PACKAGES = ("batchppo", "tensorflow", "keras", "gymnasium", "numpy")


def about_this_run() -> dict[str, Any]:
    """Return what tells later how a run came about, as JSON takes it."""
    return {
        "started": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "command": shlex.join(["batchppo", *sys.argv[1:]]),
        "folder": str(Path.cwd()),
        "host": platform.node(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "versions": {"python": platform.python_version(), **_versions()},
        "git": _git_state(),
    }


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _git_state() -> dict[str, Any] | None:
    """Return commit and cleanliness of the repository that the command was started in, if any."""
    commit = _git("rev-parse", "HEAD")
    if commit is None:
        return None
    return {"commit": commit, "modified": bool(_git("status", "--porcelain", "-uno"))}


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], capture_output=True, text=True, check=True, timeout=5
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
