"""Who may import whom, and what is installed."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"batchgym": "batchgym", "batchppo": "batchppo", "batchppo_cli": "cli"}
SOURCES = [
    path.relative_to(ROOT) for folder in FOLDERS.values() for path in (ROOT / folder).glob("*.py")
]


def imports(source: Path) -> Iterator[tuple[str, bool]]:
    """Top-level package of each absolute import, and whether it stands inside a function."""

    def visit(node: ast.AST, inside: bool) -> Iterator[tuple[str, bool]]:
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").partition(".")[0], inside
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside or is_function)

    yield from visit(ast.parse((ROOT / source).read_text()), inside=False)


def sources_of(folder: str) -> list[Path]:
    return [source for source in SOURCES if source.parts[0] == folder]


@pytest.mark.parametrize("source", sources_of("batchgym"), ids=str)
def test_batchgym_imports_only_gymnasium_numpy_and_cloudpickle(source: Path) -> None:
    allowed = {*sys.stdlib_module_names, "batchgym", "gymnasium", "numpy", "cloudpickle"}
    assert {package for package, _ in imports(source)} <= allowed


@pytest.mark.parametrize("source", sources_of("batchppo"), ids=str)
def test_batchppo_does_not_import_the_command_line(source: Path) -> None:
    assert {package for package, _ in imports(source)}.isdisjoint(
        {"batchppo_cli", "cli", "click", "stable_baselines3"}
    )


def test_batchppo_asks_for_batchgym_in_one_function_only() -> None:
    places = [
        (source.name, inside)
        for source in sources_of("batchppo")
        for package, inside in imports(source)
        if package == "batchgym"
    ]
    assert places == [("environments.py", True)]


@pytest.mark.parametrize("source", sources_of("cli"), ids=str)
def test_the_command_line_leaves_tensorflow_to_batchppo(source: Path) -> None:
    assert {package for package, _ in imports(source)}.isdisjoint({"tensorflow", "keras", "cli"})


def test_batchgym_and_batchppo_are_put_together_in_one_place() -> None:
    both = [
        source.name
        for source in sources_of("cli")
        if {"batchgym", "batchppo"} <= {package for package, _ in imports(source)}
    ]
    assert both == ["build.py"]


@pytest.mark.parametrize(
    "statement",
    [
        "import batchgym",
        "import batchppo",
        "import batchppo_cli",
        "from batchppo import load_policy, evaluate_policy",
        "from batchppo_cli.group import batchppo as b; b(['--help'], standalone_mode=False)",
        "from batchppo_cli.group import batchppo as b; b(['train', '-h'], standalone_mode=False)",
        "import batchppo_cli.evaluation, batchppo_cli.recording, batchppo_cli.training",
    ],
)
def test_importing_does_not_load_tensorflow(statement: str, tmp_path: Path) -> None:
    script = f"{statement}\nimport sys; sys.exit('tensorflow' in sys.modules)"
    subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL
    )


def test_nothing_installed_is_called_cli(tmp_path: Path) -> None:
    script = "import importlib.util, sys; sys.exit(importlib.util.find_spec('cli') is not None)"
    subprocess.run([sys.executable, "-P", "-c", script], cwd=tmp_path, check=True)


def test_the_packages_of_the_wheel_are_the_folders() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        setuptools = tomllib.load(file)["tool"]["setuptools"]
    mapped = {name: setuptools["package-dir"].get(name, name) for name in setuptools["packages"]}
    assert mapped == FOLDERS
    assert set(setuptools["package-data"]) == set(FOLDERS)


@pytest.mark.parametrize("folder", FOLDERS.values())
def test_packages_are_flat(folder: str) -> None:
    """A sub-package would be missing from the wheel, which lists its packages."""
    assert list((ROOT / folder).glob("*/**/*.py")) == []
    assert (ROOT / folder / "py.typed").exists()
