"""The commands and programs of the README and the documentation do what they say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_process import COMMAND, environment, run, the_run

ROOT = Path(__file__).resolve().parent.parent
PAGES = ["README.md", "docs/quickstart.md", "docs/cli.md"]

MY_PACKAGE = """
from gymnasium.envs.classic_control import CartPoleEnv as MyTask
"""


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a page."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def commands(page: str) -> list[str]:
    """The command lines of a page that call batchppo."""
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ batchppo ")]


@pytest.mark.parametrize(
    ("page", "program"), [(page, program) for page in PAGES for program in blocks(page, "python")]
)
def test_programs_run(page: str, program: str, trained: Path, tmp_path: Path) -> None:
    if program.startswith("# my_package.py"):
        pytest.skip("part of a package, used by test_commands_run")
    (tmp_path / "program.py").write_text(
        program.replace("50_000", "2_000").replace(
            "runs/cartpole/2026-01-31_12-00-00", str(the_run(trained))
        )
    )
    subprocess.run([sys.executable, "program.py"], cwd=tmp_path, check=True, env=environment())


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES)
def test_commands_run(page: str, trained: Path, tmp_path: Path) -> None:
    """Each command in turn, with few steps, in a folder that has what the page speaks of."""
    (package,) = blocks("docs/quickstart.md", "python")[1:]
    (tmp_path / "my_package.py").write_text(MY_PACKAGE + package)
    (tmp_path / "mine.toml").write_text(blocks("docs/cli.md", "toml")[0].replace("50_000", "2_000"))
    runs = tmp_path / "runs" / "cartpole"
    runs.mkdir(parents=True)
    (runs / "2026-01-31_12-00-00").symlink_to(the_run(trained))
    for line in commands(page):
        text = line.replace("200000", "4000").replace("--seeds 0-4", "--seeds 0-1")
        if " train " in text and not re.search("--timesteps|--config", text):
            text += " --timesteps 1024"
        text = text.replace("--trials 30", "--trials 2 --timesteps 1024")
        text = text.replace("benchmark pendulum", "benchmark pendulum --num-envs 8 --seconds 0.5")
        text = text.replace("1e6", "1024").replace("$ batchppo", COMMAND)
        done = subprocess.run(
            ["bash", "-c", text.replace("batchppo", COMMAND, 1)],
            cwd=tmp_path,
            check=False,
            capture_output=True,
            text=True,
            env=environment(PYTHONPATH=str(tmp_path)),
        )
        assert done.returncode == 0, f"{line}\n{done.stderr}"


def test_every_option_and_command_is_in_the_help(tmp_path: Path) -> None:
    pages = " ".join((ROOT / page).read_text() for page in PAGES)
    helps = [run(tmp_path, "--help").stdout]
    names = re.findall(r"^  (\w+)  ", helps[0].partition("Commands:")[2], re.MULTILINE)
    helps += [run(tmp_path, name, "--help").stdout for name in names]
    known = set(re.findall(r"--[a-z-]+", " ".join(helps)))
    used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", pages))
    assert used <= known
    assert [name for name in names if f"`batchppo {name}" not in pages] == []
