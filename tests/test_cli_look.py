"""`info`, `plot`, `presets`, `envs`, `completion` and `render --live`: looking at what there is."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from batchppo_cli.confidence import bootstrap_interval
from batchppo_cli.curves import load_curves
from batchppo_cli.errors import BadInput
from batchppo_cli.run_config import EnvConfig, RunConfig
from cli_process import SMALL_STEPS, run, the_run
from PIL import Image


def make_run(logdir: Path, number: int, values: list[float], **changes: object) -> None:
    """Makes a run of 100 steps a row that logged these mean returns."""
    folder = logdir / "cartpole" / f"2026-01-02_03-04-0{number}"
    folder.mkdir(parents=True)
    settings = {
        "task": "cartpole",
        "environment": EnvConfig(id="CartPole-v1"),
        "total_timesteps": 1000,
        "num_envs": 8,
        "seed": number,
        "eval_every": 100,
        "eval_episodes": 10,
    }
    RunConfig(**{**settings, **changes}).save(folder / "config.json", {})
    rows = [f"{100 * (row + 1)},{value}" for row, value in enumerate(values)]
    text = "\n".join(["time/total_timesteps,rollout/ep_rew_mean", *rows, ",", ""])
    (folder / "progress.csv").write_text(text)


def test_runs_that_differ_in_their_seed_are_one_curve(tmp_path: Path) -> None:
    make_run(tmp_path, 1, [0.0, 10.0, 20.0])
    make_run(tmp_path, 2, [2.0, 14.0, 26.0, 99.0])
    make_run(tmp_path, 3, [5.0, 5.0], agent={"gamma": 0.5})
    both, other = load_curves(["cartpole"], tmp_path, "rollout/ep_rew_mean")
    assert (both.steps[0], both.steps[-1]) == (100.0, 300.0), "where both runs have been"
    assert both.mean == pytest.approx(1.0 + 11.0 * (both.steps - 100.0) / 100.0)
    assert both.interval is not None
    assert both.interval[:, -1] == pytest.approx([20.0, 26.0])
    assert both.label == "2 seeds"
    assert (other.label, other.interval) == ("gamma 0.5, seed 3", None)


def test_what_does_not_change_what_is_learned_makes_no_curve_of_its_own(tmp_path: Path) -> None:
    make_run(tmp_path, 1, [0.0, 1.0], agent={"policy_kwargs": {"net_arch": [8]}})
    make_run(tmp_path, 2, [0.0, 1.0], agent={"policy_kwargs": {"net_arch": [8]}}, eval_every=7)
    make_run(tmp_path, 3, [0.0, 1.0], total_timesteps=2000)
    make_run(tmp_path, 4, [0.0, 1.0], total_timesteps=2000, seed=3, num_workers=1)
    curves = load_curves(["cartpole"], tmp_path, "rollout/ep_rew_mean")
    assert [curve.label for curve in curves] == [
        "net_arch [8], total_timesteps 1,000, 2 seeds",
        "total_timesteps 2,000, 2 runs",
    ]


def test_a_metric_that_was_not_logged(tmp_path: Path) -> None:
    make_run(tmp_path, 1, [0.0])
    with pytest.raises(BadInput, match=r"Did you mean rollout/ep_rew_mean\?"):
        load_curves(["cartpole"], tmp_path, "rollout/ep_rew_meen")


def test_the_interval_of_a_mean_against_the_normal_approximation() -> None:
    values = np.random.default_rng(1).normal(3.0, 2.0, size=(400, 2))
    low, high = bootstrap_interval(values)
    half = 1.96 * values.std(axis=0) / np.sqrt(400)
    assert low == pytest.approx(values.mean(axis=0) - half, abs=0.03)
    assert high == pytest.approx(values.mean(axis=0) + half, abs=0.03)
    assert bootstrap_interval([5.0, 5.0]) == pytest.approx([5.0, 5.0])


@pytest.mark.parametrize("name", ["curves.png", "out.svg"])
def test_plot_draws_a_picture(trained: Path, name: str) -> None:
    arguments = [] if name == "curves.png" else ["--output", name]
    done = run(trained, "plot", "cartpole", *arguments)
    assert (done.returncode, done.stdout) == (0, f"{name}\n")
    if name.endswith(".svg"):
        assert "cartpole" in (trained / name).read_text()
        return
    with Image.open(trained / name) as picture:
        pixels = np.asarray(picture.convert("RGB"), int)
    line = np.abs(pixels - (0x00, 0x72, 0xB2)).sum(axis=2) < 30
    assert np.ptp(np.flatnonzero(line.any(axis=0))) > 0.7 * pixels.shape[1], (
        "no curve from side to side"
    )


def test_plot_refuses_other_formats(tmp_path: Path) -> None:
    done = run(tmp_path, "plot", "cartpole", "--output", "curves.bmp")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "use one of .png, .svg, .pdf" in done.stderr


def test_info_tells_what_a_run_is(trained: Path) -> None:
    done = run(trained, "info", "cartpole", "--checkpoint", "last", "--json")
    info = json.loads(done.stdout)
    assert info["model"].endswith("model.zip")
    assert (info["timesteps"], info["seed"], info["task"]) == (SMALL_STEPS, 3, "cartpole")
    assert info["actions"] == "Discrete(2)"
    assert info["settings"]["gamma"] == 0.98
    evaluations = json.loads((the_run(trained) / "evaluations.json").read_text())
    assert info["evaluation"] == pytest.approx(np.mean(evaluations[-1]["returns"]))
    table = run(trained, "info", "cartpole", COLUMNS="60").stdout
    assert "gamma 0.98" in " ".join(table.split())
    assert "policy MlpPolicy" in " ".join(table.split())
    assert max(map(len, table.splitlines())) <= 60


def test_info_of_a_file_alone(trained: Path, tmp_path: Path) -> None:
    shutil.copy(the_run(trained) / "model.zip", tmp_path / "agent.zip")
    done = run(tmp_path, "info", "agent.zip")
    assert done.returncode == 0
    assert re.search(r"timesteps +2,048", done.stdout)


def test_a_checkpoint_that_does_not_exist(trained: Path) -> None:
    done = run(trained, "eval", "cartpole", "--checkpoint", "77")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "has no checkpoint at 77 steps. It has no checkpoints." in done.stderr


def test_presets(tmp_path: Path) -> None:
    text = run(tmp_path, "presets").stdout
    assert re.search(r"cartpole +CartPole-v1 +475 +100,000 +8 +1,024", text)
    text = run(tmp_path, "presets", "pendulum-2017").stdout
    assert re.search(r"wrappers +RescaleAction\(min_action=-1, max_action=1\)", text)
    assert re.search(r"policy_kwargs.net_arch +\[200,100\]", text)
    presets = json.loads(run(tmp_path, "presets", "--json").stdout)
    assert presets["pendulum"]["env_id"] == "Pendulum-v1"
    done = run(tmp_path, "presets", "pendulm")
    assert done.returncode == 2
    assert "no preset 'pendulm'. Did you mean pendulum" in done.stderr


def test_envs(tmp_path: Path) -> None:
    environments = json.loads(run(tmp_path, "envs", "a", "--json").stdout)
    problems = {entry["id"]: entry["problem"] for entry in environments}
    assert problems["CartPole-v1"] == ""
    assert "CartPole-v0" not in problems
    assert problems["Blackjack-v1"] == "no: spaces"
    done = run(tmp_path, "envs", "Breaks", "--import", "cli_stub_envs")
    assert re.search(r"Breaks-v0 +Box 2 float32 +Discrete 2 +yes", done.stdout)
    assert "no such environment" in run(tmp_path, "envs", "qqq").stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("batchppo tr", "plain,train"),
        ("batchppo train cart", "plain,cartpole"),
        ("batchppo train --eval-e", "plain,--eval-every"),
        ("batchppo eval ca", "plain,cartpole"),
        ("batchppo eval xyz", "file,xyz"),
    ],
)
def test_the_shell_completes(trained: Path, words: str, expected: str) -> None:
    done = run(
        trained,
        COMP_WORDS=words,
        COMP_CWORD=str(len(words.split()) - 1),
        _BATCHPPO_COMPLETE="bash_complete",
    )
    assert expected in done.stdout.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_completion(tmp_path: Path, shell: str) -> None:
    assert f"_BATCHPPO_COMPLETE={shell}_complete" in run(tmp_path, "completion", shell).stdout


def test_live_needs_a_display(trained: Path) -> None:
    nothing = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "SDL_VIDEODRIVER": ""}
    done = run(trained, "render", "cartpole", "--live", **nothing)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "there is no display" in done.stderr
    done = run(trained, "render", "cartpole", "--live", SDL_VIDEODRIVER="dummy")
    assert re.match(r"episode 1: return [\d.]+, \d+ steps\n", done.stderr)
    done = run(trained, "render", "cartpole", "--live", "--fps", "3")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
