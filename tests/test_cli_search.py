"""`batchppo tune` and `batchppo benchmark`."""

import dataclasses
import json
import signal
import tomllib
from pathlib import Path

import optuna
import pytest
from batchppo_cli import search
from batchppo_cli.errors import BadInput
from batchppo_cli.plan import TrainOptions, plan_runs
from batchppo_cli.run_config import RunConfig
from batchppo_cli.search_space import suggest
from batchppo_cli.settings import check_settings, parse_settings
from batchppo_cli.speed import Speed, recommended
from cli_process import members_of_session, run, start

CHOICES = {
    "rows": 1024,
    "learning_rate": 1e-3,
    "batch_size": 128,
    "n_epochs": 5,
    "one_minus_gamma": 0.01,
    "one_minus_gae_lambda": 0.05,
    "clip_range": 0.2,
    "ent_coef": 1e-4,
    "max_grad_norm": 0.5,
    "network": "small",
    "activation_fn": "relu",
}


@pytest.mark.parametrize(("num_envs", "n_steps"), [(8, 128), (1, 1024), (5000, 1)])
def test_a_suggestion_is_what_the_agent_takes(num_envs: int, n_steps: int) -> None:
    agent = suggest(optuna.trial.FixedTrial(CHOICES), num_envs)
    check_settings(agent)
    assert agent["n_steps"] == n_steps
    assert agent["gamma"] == pytest.approx(0.99)
    assert agent["policy_kwargs"] == {"net_arch": [64, 64], "activation_fn": "relu"}


def test_what_is_recommended_is_no_larger_than_it_need_be() -> None:
    figures = [(8, 1, 900.0), (8, 2, 1850.0), (32, 1, 1900.0), (32, 2, 2000.0)]
    speeds = [Speed(envs, workers, speed, {}) for envs, workers, speed in figures]
    assert recommended(speeds) == speeds[1]
    assert recommended(speeds[:1]) == speeds[0]


def test_among_equals_the_default_is_recommended() -> None:
    speeds = [Speed(8, workers, 100.0, {}) for workers in (2, 0, None)]
    assert recommended(speeds) == speeds[2]
    assert recommended(speeds[:2]) == speeds[1]


def test_what_is_fixed_is_not_searched_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings file of a search has it too, with how the environment is made."""
    agents = []

    def run_trial(config: RunConfig, trial: optuna.Trial) -> float:
        agents.append(config.agent)
        trial.set_user_attr("agent", dict(config.agent))
        return -5.0 + trial.number

    monkeypatch.setattr(search, "_run_trial", run_trial)
    options = TrainOptions(
        seed=1,
        settings=("gamma=0.5", "policy_kwargs.activation_fn=elu", "clip_range_vf=none"),
        env_kwargs=("render_mode=none", "sutton_barto_reward=true"),
        wrappers=("TimeLimit(max_episode_steps=6)",),
    )
    (config,) = plan_runs("cartpole", None, None, options)
    fixed = parse_settings(options.settings)
    search.search(search.Search(config, fixed, tmp_path), 3, as_json=True)
    assert [agent["gamma"] for agent in agents] == [0.5] * 3
    assert {agent["policy_kwargs"]["activation_fn"] for agent in agents} == {"elu"}
    assert len({agent["learning_rate"] for agent in agents}) == 3
    (found,) = plan_runs(None, tmp_path / "best.toml", None, TrainOptions())
    assert found.agent == agents[2]
    assert found.environment.wrappers == options.wrappers
    assert found.environment == config.environment
    assert found.agent["clip_range_vf"] is None
    other = dataclasses.replace(config, total_timesteps=7)
    with pytest.raises(BadInput, match="was begun with total_timesteps 100000, not 7"):
        search.search(search.Search(other, fixed, tmp_path), 4, as_json=True)


def test_the_settings_of_a_search_name_the_task_as_the_command_line_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run folders leave the module out of `cli_stub_envs:Breaks-v0`: that is no id."""

    def run_trial(config: RunConfig, trial: optuna.Trial) -> float:
        trial.set_user_attr("agent", dict(config.agent))
        return 1.0

    monkeypatch.setattr(search, "_run_trial", run_trial)
    for name in ("cartpole", "cli_stub_envs:Breaks-v0"):
        (config,) = plan_runs(name, None, None, TrainOptions(imports=("cli_stub_envs",)))
        search.search(search.Search(config, {}, tmp_path / name), 1, as_json=True)
        (found,) = plan_runs(None, tmp_path / name / "best.toml", None, TrainOptions())
        assert (found.task, found.environment) == (config.task, config.environment)


@pytest.mark.slow
def test_a_study_goes_on_and_gives_settings(tmp_path: Path) -> None:
    arguments = ("tune", "CartPole-v1", "--timesteps", "1500", "--eval-episodes", "2")
    done = run(tmp_path, *arguments, "--trials", "2")
    assert done.returncode == 0, done.stderr
    assert "trial 1: " in done.stderr
    done = run(tmp_path, *arguments, "--trials", "3", "--json")
    assert "has 2 trials already" in done.stderr
    assert "trial 2: " in done.stderr
    result = json.loads(done.stdout)
    assert result["trials"] == 3
    done = run(tmp_path, *arguments, "--set", "gamma=0.9")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "was begun with fixed {}, not {'gamma': 0.9}" in done.stderr

    file = tmp_path / result["file"]
    assert tomllib.loads(file.read_text())["agent"] == result["best"]["agent"]
    done = run(tmp_path, "train", "--config", str(file), "--timesteps", "512", "--json")
    config = json.loads((tmp_path / json.loads(done.stdout)["folder"] / "config.json").read_text())
    assert config["agent"] == result["best"]["agent"]


@pytest.mark.slow
def test_an_interrupt_ends_a_search_in_one_line(tmp_path: Path) -> None:
    process = start(tmp_path, "tune", "CartPole-v1", "--timesteps", "1500", "--eval-episodes", "2")
    assert process.stderr is not None
    with process:
        assert process.stderr.readline().startswith("trial 0: ")
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate()
    assert process.returncode == 130
    lines = [line for line in rest.splitlines() if not line.startswith("trial ")]
    assert lines == ["Interrupted."]
    assert members_of_session(process.pid) == []
    assert (tmp_path / "runs" / "CartPole-v1" / "tune" / "best.toml").is_file()


@pytest.mark.slow
def test_a_benchmark_of_this_machine(tmp_path: Path) -> None:
    options = ("--num-envs", "4", "--num-envs", "8", "--seconds", "0.5")
    done = run(tmp_path, "benchmark", "cartpole", *options, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    tried = [(speed["num_envs"], speed["num_workers"]) for speed in document["speeds"]]
    assert tried == [(4, None), (4, 0), (8, None), (8, 0)]
    for speed in document["speeds"]:
        assert sum(speed["shares"].values()) == pytest.approx(1.0)
        assert speed["steps_per_second"] > 0
    assert document["recommended"] in document["speeds"]
    assert list(tmp_path.iterdir()) == []
