"""`batchppo train --seeds`: what became of each, whatever became of the others."""

import json
import re
import shutil
from pathlib import Path

import pytest
from batchppo_cli import series
from batchppo_cli.group import batchppo
from batchppo_cli.outcome import Evaluation, Outcome
from batchppo_cli.run import Run
from click.testing import CliRunner, Result

BAD_SEED, INTERRUPTED_SEED, STOPPED_SEED, UNBEGUN_SEED = 1, 2, 3, 9


def pretend_to_train(run: Run, progress: str) -> Outcome:
    seed = run.config.seed
    if seed == BAD_SEED:
        raise RuntimeError("the robot fell into the pond")
    if seed == INTERRUPTED_SEED:
        raise KeyboardInterrupt
    if seed == UNBEGUN_SEED:
        shutil.rmtree(run.folder.path)
        raise ValueError("no such space")
    return Outcome(
        task=run.config.task,
        folder=run.folder.path,
        seed=seed,
        timesteps=100,
        seconds=2.0,
        steps_per_second=50.0,
        evaluations=(Evaluation(100, (float(seed),), (5,)),),
        exit_code=130 if seed == STOPPED_SEED else 0,
    )


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(series, "run_training", pretend_to_train)
    monkeypatch.setenv("COLUMNS", "200")

    def call(seeds: str, *arguments: str) -> Result:
        command = ["train", "cartpole", "--logdir", str(tmp_path), "--seeds", seeds, *arguments]
        return CliRunner().invoke(batchppo, command)

    return call


def test_one_that_fails_does_not_hide_the_others(train) -> None:
    done = train("0,1,5")
    assert done.exit_code == 1
    assert re.search(r"all +2\.500 ± 2\.500 +2\.500 ± 2\.500", done.stdout)
    assert done.stdout.count("/cartpole/") >= 2
    errors = done.stderr.splitlines()
    assert "seed 1 failed: the robot fell into the pond" in errors
    assert errors[-1] == "Error: seed 1 failed"


@pytest.mark.parametrize(
    ("seeds", "skipped"), [("0,2,5", "seeds 2, 5"), ("0,3,5", "seed 5")], ids=["starting", "going"]
)
def test_an_interrupt_shows_those_that_finished(train, seeds: str, skipped: str) -> None:
    done = train(seeds)
    assert done.exit_code == 130
    assert "best return" in done.stdout
    assert done.stderr.splitlines()[-1] == f"Not trained: {skipped}."


def test_all_that_failed_are_named(train) -> None:
    done = train("4,1,9", "--quiet")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "seed 1 failed: the robot fell into the pond",
        "seed 9 failed: no such space",
        "Error: seeds 1, 9 failed",
    ]


def test_what_could_not_even_begin_is_not_tried_with_every_seed(train) -> None:
    done = train("9,0,5")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.splitlines() == ["cartpole, seed 9", "Error: no such space"]


def test_json_has_them_all(train) -> None:
    done = train("0,1,3,5", "--json")
    assert done.exit_code == 130
    documents = json.loads(done.stdout)
    assert [(each["seed"], each["exit_code"]) for each in documents] == [(0, 0), (3, 130), (1, 1)]
    assert documents[-1]["error"] == "the robot fell into the pond"


def test_debugging_shows_where(train) -> None:
    assert "pretend_to_train" in train("0,1", "--debug").stderr
    assert "pretend_to_train" not in train("0,1").stderr
