"""Runs the installed command `batchppo` in new processes."""

import os
import subprocess
import sys
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("batchppo"))
_TESTS = str(Path(__file__).parent)

# A training of a few seconds.
SMALL_STEPS = 2048
SMALL = f"--timesteps {SMALL_STEPS} --num-envs 4 --num-workers 1 --seed 3".split()


def environment(**variables: str) -> dict[str, str]:
    """Variables of a process without terminal, which finds the modules of the tests."""
    return {**os.environ, "COLUMNS": "100", "PYTHONPATH": _TESTS, **variables}


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs `batchppo` in `folder` and returns what became of it."""
    return subprocess.run(
        [COMMAND, *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        env=environment(**variables),
    )


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Starts `batchppo` in `folder`, in a session of its own."""
    return subprocess.Popen(
        [COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        env=environment(),
        start_new_session=True,
    )


def members_of_session(session: int) -> list[str]:
    """Returns the command lines of the processes of a session that are still there."""
    members = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            status = (process / "stat").read_text().rpartition(")")[2].split()
            if int(status[3]) == session and status[0] != "Z":
                members.append((process / "cmdline").read_text().replace("\0", " "))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return members


def the_run(folder: Path, task: str = "cartpole") -> Path:
    """Returns the folder of the only run of a task."""
    (found,) = (folder / "runs" / task).iterdir()
    return found
