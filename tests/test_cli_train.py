"""`batchppo train`, `eval` and `render`: the installed command in real processes."""

import csv
import json
import re
import signal
import subprocess
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
from cli_process import (
    COMMAND,
    SMALL,
    SMALL_STEPS,
    environment,
    members_of_session,
    run,
    start,
    the_run,
)
from PIL import Image


def decode(path: Path, width: int, height: int) -> tuple[np.ndarray, str]:
    """Returns the frames of a video, [frames, height, width, 3], and its frames a second."""
    ffmpeg = imageio_ffmpeg.get_ffmpeg_exe()
    arguments = ["-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    done = subprocess.run([ffmpeg, *arguments], check=True, capture_output=True)
    fps = re.findall(rb"Video:.* ([\d.]+) fps", done.stderr)[0].decode()
    return np.frombuffer(done.stdout, np.uint8).reshape(-1, height, width, 3).astype(int), fps


def test_a_run_folder_holds_everything(trained: Path) -> None:
    folder = the_run(trained)
    names = {re.sub(r"events\..*", "events", path.name) for path in folder.iterdir()}
    assert names == {
        "best_model.zip",
        "config.json",
        "evaluations.json",
        "events",
        "model.zip",
        "progress.csv",
    }
    config = json.loads((folder / "config.json").read_text())
    assert (config["environment"]["id"], config["seed"]) == ("CartPole-v1", 3)
    assert config["about"]["command"] == f"batchppo train cartpole {' '.join(SMALL)}"
    assert config["about"]["versions"].keys() >= {"batchppo", "tensorflow", "gymnasium"}


def test_progress_is_logged_up_to_the_last_step(trained: Path) -> None:
    with (the_run(trained) / "progress.csv").open() as file:
        rows = list(csv.DictReader(file))
    *steps, last = [int(row["time/total_timesteps"]) for row in rows]
    assert steps == list(range(512, SMALL_STEPS + 1, 512))  # rollouts of 128 x 4
    assert last == SMALL_STEPS
    assert rows[-1]["eval/mean_reward"], "the evaluation at the end"


def test_lines_and_a_table_without_a_terminal(trained: Path) -> None:
    lines = (trained / "stderr").read_text().splitlines()
    shape = re.compile(r" *[\d,]+/2,048 steps  (evaluation: |.* steps/s  mean return .* left)")
    assert [line for line in lines if not shape.match(line)] == []
    assert lines[-1].startswith("2,048/2,048 steps  evaluation: ")
    table = (trained / "stdout").read_text()
    assert "2,048 steps in" in table
    assert f"batchppo render runs/cartpole/{the_run(trained).name}" in table
    assert "\x1b" not in table


@pytest.mark.parametrize("name", ["cartpole", "runs/cartpole", "model.zip"])
def test_eval_takes_a_task_a_folder_and_a_file(trained: Path, name: str) -> None:
    what = str(the_run(trained) / name) if name == "model.zip" else name
    done = run(trained, "eval", what, "--episodes", "3", "--json")
    (score,) = json.loads(done.stdout)
    assert len(score["returns"]) == 3
    assert score["returns"] == [float(length) for length in score["lengths"]]
    assert score["mean"] == pytest.approx(np.mean(score["returns"]))
    assert score["interval"][0] <= score["mean"] <= score["interval"][1]
    assert score["env_id"] == "CartPole-v1"
    if name == "model.zip":
        assert score["timesteps"] == SMALL_STEPS


def test_eval_shows_a_table_and_is_reproducible(trained: Path) -> None:
    first, second = (
        run(trained, "eval", "cartpole", "--episodes", "4", "--stochastic") for _ in range(2)
    )
    assert first.stdout == second.stdout
    assert re.search(r"deterministic +4 ", first.stdout)
    assert re.search(r"stochastic +4 ", first.stdout)
    assert first.stderr == ""


def test_a_model_alone_needs_its_environment(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "agent.zip").write_bytes((the_run(trained) / "model.zip").read_bytes())
    done = run(tmp_path, "eval", "agent.zip")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--env ID" in done.stderr
    assert run(tmp_path, "eval", "agent.zip", "--env", "CartPole-v1").returncode == 0
    done = run(tmp_path, "eval", "agent.zip", "--env", "Pendulum-v1")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "Pendulum-v1 has observations Box 3 float32; agent.zip was trained with" in done.stderr


def test_a_video_has_a_frame_for_each_step(trained: Path) -> None:
    done = run(trained, "render", "cartpole", "--output", "out.mp4", "--seed", "5")
    assert done.stdout == "out.mp4\n"
    (length,) = re.findall(r"episode 1: return [\d.]+, ([\d,]+) steps", done.stderr)
    frames, fps = decode(trained / "out.mp4", width=600, height=400)
    assert fps == "50"
    assert len(frames) == int(length.replace(",", "")) + 1
    assert np.abs(frames[0] - frames[-1]).max() > 100, "the picture stands still"


def test_a_video_can_be_cut_short(trained: Path) -> None:
    arguments = ("--output", "short.mp4", "--max-steps", "4", "--episodes", "2", "--fps", "10")
    done = run(trained, "render", "cartpole", *arguments)
    assert [line for line in done.stderr.splitlines() if " 4 steps (0 s of video)" in line] != []
    frames, fps = decode(trained / "short.mp4", width=600, height=400)
    assert (len(frames), fps) == (2 * (4 + 1), "10")


def test_a_gif_moves_and_repeats(trained: Path) -> None:
    assert run(trained, "render", "cartpole", "--output", "out.gif").returncode == 0
    with Image.open(trained / "out.gif") as gif:
        assert (gif.size, gif.info["loop"], gif.info["duration"]) == ((600, 400), 0, 40)
        assert gif.n_frames > 3
        first = np.asarray(gif.convert("RGB"), int)
        gif.seek(gif.n_frames - 1)
        assert np.abs(first - np.asarray(gif.convert("RGB"), int)).max() > 100


def test_videos_without_a_name_do_not_overwrite_each_other(trained: Path) -> None:
    names = [Path(run(trained, "render", "cartpole").stdout.strip()).name for _ in range(2)]
    assert names == ["video.mp4", "video_2.mp4"]


def test_quiet_and_json_are_for_programs(tmp_path: Path) -> None:
    done = run(tmp_path, "train", "CartPole-v1", *SMALL, "--quiet", "--json")
    assert done.stderr == ""
    outcome = json.loads(done.stdout)
    assert (outcome["timesteps"], outcome["exit_code"]) == (SMALL_STEPS, 0)
    assert Path(outcome["folder"]) == the_run(tmp_path, "CartPole-v1").relative_to(tmp_path)
    assert outcome["best"] in outcome["evaluations"]


@pytest.mark.slow
def test_options_reach_the_training(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    options = "--eval-every 400 --eval-episodes 3 --checkpoint-every 200 --stop-at 5 --json"
    wrapper = ("--wrapper", "TimeLimit(max_episode_steps=6)", "--env-kwarg", "render_mode=none")
    arguments = (*SMALL, *options.split(), *wrapper)
    done = run(tmp_path, "train", "cartpole", *arguments, TMPDIR=str(temporary))
    assert done.returncode == 0, done.stderr
    assert list(temporary.iterdir()) == []
    outcome = json.loads(done.stdout)
    assert outcome["timesteps"] == 400
    assert [entry["timesteps"] for entry in outcome["evaluations"]] == [400]
    evaluations = json.loads((the_run(tmp_path) / "evaluations.json").read_text())
    assert evaluations[0]["lengths"] == [6, 6, 6]
    *_, last = csv.DictReader((the_run(tmp_path) / "progress.csv").read_text().splitlines())
    assert (last["time/total_timesteps"], last["eval/mean_reward"]) == ("400", "6.0")
    checkpoints = [path.name for path in (the_run(tmp_path) / "checkpoints").iterdir()]
    assert sorted(checkpoints) == ["model_200_steps.zip", "model_400_steps.zip"]
    done = run(tmp_path, "eval", "cartpole", "--checkpoint", "200", "--episodes", "2", "--json")
    assert json.loads(done.stdout)[0]["lengths"] == [6, 6]
    done = run(tmp_path, "eval", "cartpole", "--checkpoint", "300")
    assert "There are: 200, 400." in done.stderr


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        *(pytest.param(signal.SIGINT, marks=pytest.mark.slow),) * 5,
    ],
)
def test_an_interrupt_saves_the_agent(tmp_path: Path, number: signal.Signals) -> None:
    process = start(
        tmp_path, "train", "cartpole", "--timesteps", "1e7", "--eval-every", "500", "--json"
    )
    assert process.stderr is not None
    with process:
        assert "steps" in process.stderr.readline()
        process.send_signal(number)
        output, rest = process.communicate()
    assert process.returncode == (130 if number == signal.SIGINT else 143)
    outcome = json.loads(output)
    assert outcome["exit_code"] == process.returncode
    last = rest.splitlines()[-1]
    assert last.startswith(f"Interrupted after {outcome['timesteps']:,} steps")
    assert members_of_session(process.pid) == []
    assert str(the_run(tmp_path).relative_to(tmp_path) / "model.zip") in last
    assert run(tmp_path, "eval", "cartpole", "--episodes", "2").returncode == 0


def test_an_error_of_an_environment_is_told_and_the_agent_kept(tmp_path: Path) -> None:
    done = run(tmp_path, "train", "cli_stub_envs:Breaks-v0", *SMALL)
    assert done.returncode == 1
    *_, kept, error = done.stderr.splitlines()
    assert "Traceback" not in done.stderr
    assert "ERROR" not in done.stderr
    assert re.search(r"[Ee]nvironment \d", error)
    assert "the robot fell into the pond" in error
    assert str(the_run(tmp_path, "Breaks-v0").relative_to(tmp_path)) in kept
    assert (the_run(tmp_path, "Breaks-v0") / "model.zip").is_file()


@pytest.mark.slow
def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    done = run(tmp_path, "train", "cli_stub_envs:Breaks-v0", *SMALL, "--debug")
    assert done.returncode == 1
    assert "Traceback (most recent call last)" in done.stderr


def test_a_reward_that_is_no_number_is_told(tmp_path: Path) -> None:
    done = run(tmp_path, "train", "cli_stub_envs:NotANumber-v0", *SMALL)
    assert done.returncode == 1
    error = done.stderr.splitlines()[-1]
    assert "reward" in error
    assert "nan" in error.lower()
    assert "environment 0" in error


@pytest.mark.slow
def test_a_full_disk_is_told_and_loses_no_model(tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk: what is logged outgrows it."""
    options = ["--eval-every", "500", "--eval-episodes", "2", "--num-workers", "1"]
    limited = f"ulimit -f 150; exec {COMMAND} train CartPole-v1 --set n_steps=1 {' '.join(options)}"
    done = subprocess.run(
        ["bash", "-c", limited],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(),
    )
    assert done.returncode == 1, done.stderr
    *_, kept, error = done.stderr.splitlines()
    assert "The agent so far is kept in" in kept, done.stderr
    assert str(the_run(tmp_path, "CartPole-v1").relative_to(tmp_path)) in error
    assert "File too large" in error
    assert run(tmp_path, "eval", "CartPole-v1", "--episodes", "2").returncode == 0


def test_an_unsupported_space_leaves_no_folder(tmp_path: Path) -> None:
    done = run(tmp_path, "train", "Blackjack-v1", *SMALL)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "Tuple" in done.stderr
    assert list(tmp_path.glob("runs/*/*")) == []
