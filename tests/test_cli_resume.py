"""`batchppo train --resume`: one run, whatever happened in between."""

import csv
import itertools
import json
import signal
import time
from pathlib import Path

import pytest
from batchppo_cli.rewind import rewind_csv, rewind_events
from cli_process import members_of_session, run, start, the_run

BEGIN = ("train", "cartpole", "--seed", "3", "--num-envs", "4", "--num-workers", "1")


def steps_in_csv(folder: Path) -> list[int]:
    with (folder / "progress.csv").open() as file:
        return [int(row["time/total_timesteps"]) for row in csv.DictReader(file)]


def steps_in_events(folder: Path, tag: str) -> list[int]:
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    events = [
        event for path in folder.glob("events.*") for event in EventFileLoader(str(path)).Load()
    ]
    events.sort(key=lambda event: event.wall_time)
    return [event.step for event in events for value in event.summary.value if value.tag == tag]


def wait_for(path: Path) -> Path:
    """Waits until a file of this pattern is there."""
    while not (found := list(path.parent.parent.glob(f"*/{path.name}"))):
        time.sleep(0.05)
    return found[0]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was killed in its middle."""
    folder = tmp_path_factory.mktemp("killed")
    process = start(folder, *BEGIN, "--timesteps", "1e6", "--eval-every", "500")
    with process:
        wait_for(folder / "runs" / "cartpole" / "*" / "model.zip")
        assert process.stderr is not None
        while "evaluation" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGKILL)
    while members_of_session(process.pid):
        time.sleep(0.05)
    return folder


def test_a_killed_run_goes_on_to_the_asked_total(killed: Path) -> None:
    folder = the_run(killed)
    done = run(killed, "train", "--resume", "cartpole", "--timesteps", "3000", "--json")
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["timesteps"] == 3000
    assert Path(outcome["folder"]) == folder.relative_to(killed)

    *trained, last = steps_in_csv(folder)
    assert last == 3000, "the evaluation at the end"
    for steps in (trained, steps_in_events(folder, "train/loss")):
        assert steps == sorted(set(steps))
        assert steps[-1] == 3000
        assert max(b - a for a, b in itertools.pairwise(steps)) <= 128 * 4  # a rollout
    evaluated = [entry["timesteps"] for entry in outcome["evaluations"]]
    assert evaluated == sorted(set(evaluated))

    config = json.loads((folder / "config.json").read_text())
    assert (config["total_timesteps"], config["seed"]) == (3000, 3)
    (resumed,) = config["about"]["resumed"]
    assert resumed["command"] == "batchppo train --resume cartpole --timesteps 3000 --json"


@pytest.mark.slow
def test_a_run_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    arguments = ("--timesteps", "1024", "--checkpoint-every", "256", "--quiet")
    assert run(tmp_path, *BEGIN, *arguments).returncode == 0
    folder = the_run(tmp_path)
    checkpoint = folder / "checkpoints" / "model_512_steps.zip"
    done = run(tmp_path, "train", "--resume", str(checkpoint), "--timesteps", "768", "--json")
    assert json.loads(done.stdout)["timesteps"] == 768, done.stderr
    assert max(steps_in_csv(folder)) == 768
    assert max(steps_in_events(folder, "train/loss")) == 768
    done = run(tmp_path, "info", "cartpole", "--checkpoint", "last", "--json")
    assert json.loads(done.stdout)["timesteps"] == 768


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--timesteps", "10"], "steps already; --timesteps, the new total, must be greater"),
        (["--seed", "3"], "--seed cannot be given with --resume"),
        (["--set", "gamma=0.9"], "--set cannot be given with --resume"),
        (["pendulum"], "TASK cannot be given with --resume"),
    ],
)
def test_what_cannot_be_resumed(killed: Path, arguments: list[str], message: str) -> None:
    done = run(killed, "train", "--resume", "cartpole", *arguments)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr


def test_the_csv_is_cut_back(tmp_path: Path) -> None:
    path = tmp_path / "progress.csv"
    path.write_text("time/total_timesteps,a\n100,1\n200,2\n300,3\n30")
    rewind_csv(path, 200)
    assert path.read_text().split() == ["time/total_timesteps,a", "100,1", "200,2"]
    rewind_csv(tmp_path / "nothing.csv", 200)
    assert [file.name for file in tmp_path.iterdir()] == ["progress.csv"]


def test_a_row_that_was_cut_off_goes(tmp_path: Path) -> None:
    path = tmp_path / "progress.csv"
    path.write_text("time/total_timesteps,a,b\n100,1,2\n150,")
    rewind_csv(path, 200)
    assert path.read_text().split() == ["time/total_timesteps,a,b", "100,1,2"]


def test_events_are_cut_back(tmp_path: Path) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    path = tmp_path / "events.out.tfevents.1.host.2.0.v2"
    with path.open("wb") as file:
        writer = RecordWriter(file)
        for step in range(0, 500, 100):
            value = Summary.Value(tag="a", simple_value=float(step))
            writer.write(Event(step=step, summary=Summary(value=[value])).SerializeToString())
        writer.flush()
    with path.open("ab") as file:
        file.write(b"cut off")
    rewind_events(tmp_path, 200)
    assert steps_in_events(tmp_path, "a") == [0, 100, 200]
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
