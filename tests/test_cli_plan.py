"""From options to settings: --set, --seeds, --config and what comes before what."""

from pathlib import Path
from typing import Any

import pytest
from batchppo_cli.errors import BadInput
from batchppo_cli.plan import TrainOptions, plan_runs
from batchppo_cli.run_config import RunConfig
from batchppo_cli.seeds import parse_seeds
from batchppo_cli.settings import check_settings, parse_literal, parse_settings


def plan(task: str | None, file: Path | None = None, **options: Any) -> RunConfig:
    (config,) = plan_runs(task, file, None, TrainOptions(**options))
    return config


def test_settings_get_the_type_that_the_agent_wants() -> None:
    texts = [
        "gamma=1",
        "learning_rate=linear:3e-4",
        "clip_range=0.3",
        "n_steps=1e2",
        "target_kl=none",
        "normalize_advantage=false",
        "policy_kwargs.net_arch=[64, 32]",
        "policy_kwargs.activation_fn=relu",
    ]
    settings = parse_settings(texts)
    assert settings == {
        "gamma": 1.0,
        "learning_rate": "linear:3e-4",
        "clip_range": 0.3,
        "n_steps": 100,
        "target_kl": None,
        "normalize_advantage": False,
        "policy_kwargs": {"net_arch": [64, 32], "activation_fn": "relu"},
    }
    assert type(settings["gamma"]) is float
    assert type(settings["n_steps"]) is int


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gama=1", "unknown key 'gama'. Did you mean gamma?"),
        ("gamma", "expected KEY=VALUE"),
        ("=1", "expected KEY=VALUE"),
        ("gamma=high", "expected a number, got 'high'"),
        ("n_steps=1.5", "expected a whole number or none"),
        ("n_epochs=true", "expected a whole number"),
        ("normalize_rewards=3", "expected bool"),
        ("gamma.x=3", "only policy_kwargs has keys inside"),
        ("env=CartPole-v1", "unknown key 'env'"),
    ],
)
def test_settings_that_do_not_fit(text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_settings([text])
    assert message in caught.value.format_message()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gamma": 2.0}, "gamma must be in [0, 1]"),
        ({"learning_rate": "linea:3"}, "linear:3e-4"),
        ({"batchsize": 3}, "Did you mean batch_size?"),
    ],
)
def test_values_are_checked_before_anything_starts(settings: dict, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        check_settings(settings)
    assert message in caught.value.format_message()


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("0.5", 0.5), ("[1, 2]", [1, 2]), ("True", True), ("None", None), ("a b", "a b")],
)
def test_literals(text: str, value: object) -> None:
    assert parse_literal(text) == value


def test_options_come_before_the_preset() -> None:
    config = plan(
        "cartpole",
        timesteps=5000,
        settings=["gamma=0.5"],
        env_kwargs=["sutton_barto_reward=true"],
        wrappers=["A", "B"],
        stop_at=400.0,
    )
    assert (config.total_timesteps, config.eval_every, config.stop_at) == (5000, 500, 400.0)
    assert config.agent["gamma"] == 0.5
    assert config.agent["n_steps"] == 128
    assert config.environment.kwargs == {"sutton_barto_reward": True}
    assert config.environment.wrappers == ("A", "B")


def test_a_seed_is_drawn_and_kept() -> None:
    assert plan("cartpole").seed != plan("cartpole").seed
    assert plan("cartpole", seed=0).seed == 0


def test_seeds_give_runs_that_are_equal_otherwise() -> None:
    configs = plan_runs("cartpole", None, "3,0-1", TrainOptions())
    assert [config.seed for config in configs] == [3, 0, 1]
    assert len({str(vars(config) | {"seed": 0}) for config in configs}) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "whole number"), ("a", "whole number"), ("3-1", "backwards"), ("1,0-2", "twice")],
)
def test_what_are_no_seeds(text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_seeds(text)
    assert message in caught.value.format_message()


def test_the_configuration_of_a_run_gives_the_same_run(tmp_path: Path) -> None:
    first = plan("pendulum", timesteps=5000, settings=["gamma=0.5"], seed=7)
    first.save(tmp_path / "config.json", {})
    assert plan(None, tmp_path / "config.json") == first
    assert plan(None, tmp_path / "config.json", seed=8).seed == 8


def test_a_toml_file_changes_a_task(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'task = "cartpole"\ntotal_timesteps = 20000\n'
        "[agent]\ngamma = 0.5\npolicy_kwargs = {net_arch = [32]}\n"
        "[environment]\nkwargs = {sutton_barto_reward = true}\n"
    )
    config = plan(None, file, settings=["policy_kwargs.activation_fn=relu"])
    assert (config.task, config.total_timesteps, config.eval_every) == ("cartpole", 20_000, 2000)
    assert (config.agent["gamma"], config.agent["n_steps"]) == (0.5, 128)
    assert config.agent["policy_kwargs"] == {"net_arch": [32], "activation_fn": "relu"}
    assert config.environment.id == "CartPole-v1"
    assert config.environment.kwargs == {"sutton_barto_reward": True}
    assert plan("pendulum", file).environment.id == "Pendulum-v1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no task"),
        ("task = ", "neither the config.json of a run nor TOML"),
        ('task = "cartpol"', "Did you mean cartpole"),
        ('task = "cartpole"\nnum_env = 3', "unknown setting 'num_env'. Did you mean num_envs"),
        ('task = "cartpole"\nnum_envs = "x"', "num_envs must be a whole number"),
        ('task = "cartpole"\ntotal_timesteps = "x"', "total_timesteps must be a whole number"),
        ('task = "cartpole"\nagent = 3', "agent must be a table"),
        ('task = "cartpole"\n[agent]\ngama = 3', "Did you mean gamma"),
        ('task = "cartpole"\n[environment]\nkwarg = 3', "Did you mean kwargs"),
    ],
)
def test_files_that_do_not_fit(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(BadInput) as caught:
        plan(None, file)
    assert message in caught.value.format_message()
