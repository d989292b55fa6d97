"""Run folders: how they are named and found."""

import os
from pathlib import Path

import pytest
from batchppo_cli.errors import BadInput
from batchppo_cli.run_folder import Choice, RunFolder, find_model, find_run

OLD, NEW, NEWER = "2026-01-02_03-04-05", "2026-01-02_03-04-06", "2026-01-02_03-04-06_2"
NEWEST = "2026-01-02_03-04-06_10"


def make_run(logdir: Path, task: str, time: str, *files: str) -> Path:
    folder = logdir / task / time
    folder.mkdir(parents=True)
    for file in ("config.json", *files):
        (folder / file).touch()
    return folder


def test_each_run_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    folders = [RunFolder.create(tmp_path, "cartpole").path for _ in range(5)]
    assert len(set(folders)) == 5
    assert all(folder.parent == tmp_path / "cartpole" for folder in folders)


def test_a_task_means_its_newest_run_with_a_model(tmp_path: Path) -> None:
    make_run(tmp_path, "cartpole", OLD, "model.zip")
    make_run(tmp_path, "cartpole", NEW, "model.zip")
    newer = make_run(tmp_path, "cartpole", NEWER, "model.zip")
    make_run(tmp_path, "cartpole", NEWEST)
    (tmp_path / "cartpole" / "notes").mkdir()
    assert find_run("cartpole", tmp_path).path == newer
    (tmp_path / "cartpole" / NEWEST / "model.zip").touch()
    assert find_run("cartpole", tmp_path).path == tmp_path / "cartpole" / NEWEST


def test_the_best_model_comes_before_the_last_one(tmp_path: Path) -> None:
    run = make_run(tmp_path, "cartpole", OLD, "model.zip")
    assert find_model(Choice("cartpole", tmp_path)).path == run / "model.zip"
    (run / "best_model.zip").touch()
    assert find_model(Choice("cartpole", tmp_path)).path == run / "best_model.zip"


@pytest.mark.parametrize("file", ["model.zip", "checkpoints/model_1000_steps.zip"])
def test_a_model_file_knows_its_run(tmp_path: Path, file: str) -> None:
    run = make_run(tmp_path, "cartpole", OLD)
    (run / file).parent.mkdir(exist_ok=True)
    (run / file).touch()
    found = find_model(Choice(str(run / file), tmp_path / "elsewhere"))
    assert (found.path, found.run) == (run / file, RunFolder(run))


def test_a_model_file_has_no_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "agent.zip").touch()
    with pytest.raises(BadInput, match="is one model already"):
        find_model(Choice(str(tmp_path / "agent.zip"), tmp_path, checkpoint="last"))


@pytest.mark.parametrize("which", ["newest", "../model", "-3", "1e4", ""])
def test_what_is_no_checkpoint(tmp_path: Path, which: str) -> None:
    with pytest.raises(BadInput, match="must be best, last or a number of steps, got"):
        RunFolder(tmp_path).model_at(which)


def test_a_model_file_may_stand_alone(tmp_path: Path) -> None:
    (tmp_path / "agent.zip").touch()
    assert find_model(Choice(str(tmp_path / "agent.zip"), tmp_path)).run is None


def test_folders_are_runs_or_tasks(tmp_path: Path) -> None:
    run = make_run(tmp_path, "cartpole", OLD, "model.zip")
    assert find_run(str(run), Path("nowhere")).path == run
    assert find_run(str(run.parent), Path("nowhere")).path == run
    assert find_run(f"{run}{os.sep}", Path("nowhere")).path == run


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cartpol", "no task with a run in {0}/. Did you mean cartpole?"),
        ("xyz", "There are: cartpole, unfinished."),
        ("unfinished", "has a model yet"),
        ("{0}/cartpole/" + NEW, "has no model yet: no best_model.zip nor model.zip"),
        ("{0}/empty", "is no run folder: it has no config.json"),
    ],
)
def test_what_is_not_there_is_said(tmp_path: Path, name: str, message: str) -> None:
    make_run(tmp_path, "cartpole", OLD, "model.zip")
    make_run(tmp_path, "cartpole", NEW)
    make_run(tmp_path, "unfinished", OLD)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput) as caught:
        find_model(Choice(name.format(tmp_path), tmp_path))
    assert message.format(tmp_path) in caught.value.format_message()


def test_a_file_in_the_way_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "cartpole").touch()
    with pytest.raises(OSError, match="cartpole"):
        RunFolder.create(tmp_path, "cartpole")
