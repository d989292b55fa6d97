"""Help screens and wrong input: exit codes and one clear line."""

import contextlib
import fcntl
import os
import re
import struct
import subprocess
import termios
from pathlib import Path

import pytest
from cli_process import COMMAND, environment, run


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (["--help"], ["batchppo train cartpole", "eval ", "render ", "--help"]),
        (["train", "--help"], ["--timesteps", "--seed", "--num-envs", "--logdir", "Examples:"]),
        (["eval", "-h"], ["--episodes", "Examples:", "RUN..."]),
        (["render", "-h"], ["--output", ".gif", "Examples:"]),
        (["--version"], ["batchppo, version "]),
    ],
)
def test_help(tmp_path: Path, arguments: list[str], texts: list[str]) -> None:
    done = run(tmp_path, *arguments, COLUMNS="80")
    assert (done.returncode, done.stderr) == (0, "")
    assert [text for text in texts if text not in done.stdout] == []
    assert max(map(len, done.stdout.splitlines())) <= 88, "too wide for a common terminal"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tarin"], "there is no command 'tarin'. Did you mean train?"),
        (["train", "cartpol"], "Did you mean cartpole"),
        (["train", "CartPol-v1"], "CartPole-v1"),
        (["train", "no_such_package:Thing-v0"], "cannot import 'no_such_package'"),
        (["eval", "nothing"], "no task with a run in runs/"),
        (["render", "cartpole", "--output", "film.avi"], "cannot write '.avi' files"),
        (["render", "cartpole", "--output", "film"], "a file without an ending"),
        (["render", "cartpole", "--output", "no/film.mp4"], "no for the video does not exist"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = run(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "Missing argument 'TASK'"),
        (["train", "cartpole", "--timestep", "5"], "Did you mean '--timesteps'?"),
        (["train", "cartpole", "--timesteps", "0"], "it must be at least 1"),
        (["train", "cartpole", "--seed", "x"], "'x' is not a whole number"),
        (["eval"], "Missing argument 'RUN...'"),
    ],
)
def test_wrong_usage_shows_how_to_get_help(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = run(tmp_path, *arguments)
    assert done.returncode == 2
    assert f"Try 'batchppo {arguments[0]} --help' for help." in done.stderr
    assert message in done.stderr


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    done = run(tmp_path, "train", "cartpole", "--logdir", "/proc/nowhere")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "/proc/nowhere" in done.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "model file"), (b"PK\x03\x04 cut off", "model file"), (b"hello" * 1000, "model file")],
)
def test_a_file_that_is_no_model(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "agent.zip").write_bytes(content)
    done = run(tmp_path, "eval", "agent.zip", "--env", "CartPole-v1")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "agent.zip" in done.stderr
    assert message in done.stderr


COLOUR = r"\x1b\[(\d;)?3\d"


def output_on_a_terminal(*arguments: str, **variables: str) -> str:
    """What the command writes to a terminal that is 60 columns wide."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    unset = {name: value for name, value in environment().items() if name != "COLUMNS"}
    process = subprocess.Popen(
        [COMMAND, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**unset, "TERM": "xterm-256color", **variables},
    )
    os.close(theirs)
    output = b""
    with contextlib.suppress(OSError):  # EIO: the other side is closed
        while chunk := os.read(ours, 4096):
            output += chunk
    os.close(ours)
    process.wait()
    return output.decode()


@pytest.mark.parametrize("arguments", [("train", "cartpol"), ("envs", "CartPole-v1")])
def test_colours_only_on_a_terminal_and_only_if_wanted(arguments: tuple[str, ...]) -> None:
    assert re.search(COLOUR, output_on_a_terminal(*arguments))
    assert not re.search(COLOUR, output_on_a_terminal(*arguments, NO_COLOR="1"))


def test_help_fits_a_narrow_terminal() -> None:
    for line in output_on_a_terminal("train", "--help").splitlines():
        assert len(line) <= 60 or line.startswith("    batchppo ")
