"""From options to settings: --set, --seeds, --config and what comes before what."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from batchppo_cli import settings
from batchppo_cli.errors import BadInput
from batchppo_cli.plan import TrainOptions, plan_runs, resumable_changes
from batchppo_cli.policy_choice import suitable_policy
from batchppo_cli.run_config import RunConfig
from batchppo_cli.seeds import parse_seeds
from batchppo_cli.settings import check_settings, parse_literal, parse_settings
from gymnasium import spaces

from batchppo import BatchPPO


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
    parsed = parse_settings(texts)
    assert parsed == {
        "gamma": 1.0,
        "learning_rate": "linear:3e-4",
        "clip_range": 0.3,
        "n_steps": 100,
        "target_kl": None,
        "normalize_advantage": False,
        "policy_kwargs": {"net_arch": [64, 32], "activation_fn": "relu"},
    }
    assert type(parsed["gamma"]) is float
    assert type(parsed["n_steps"]) is int


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
        ("env=CartPole-v1", "unknown key 'env'. Use TASK."),
        ("seed=3", "unknown key 'seed'. Use --seed."),
        ("use_sde=3", "expected bool"),
    ],
)
def test_settings_that_do_not_fit(text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_settings([text])
    assert message in caught.value.format_message()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gamma": 2.0}, "gamma must be in [0, 1]"),
        ({"learning_rate": "linea:3"}, "linear:3e-4"),
        ({"batchsize": 3}, "Did you mean batch_size?"),
        ({"policy": "MlpPolitics"}, "unknown policy 'MlpPolitics'"),
        ({"policy_kwargs": {"net_arc": [64]}}, "Did you mean 'net_arch'?"),
        ({"policy_kwargs": {"net_arch": "deep"}}, "net_arch must be a list"),
    ],
)
def test_values_are_checked_before_anything_starts(changes: dict, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        check_settings(changes)
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
    other = plan("pendulum", file)
    assert (other.task, other.environment.id) == ("pendulum", "Pendulum-v1")


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
        ('task = "cartpole"\n[agent]\ngama = 3', "mine.toml: the agent has no setting 'gama'"),
        ('task = "cartpole"\n[agent]\ngamma = nan', "mine.toml: gamma must be"),
        (
            'task = "cartpole"\n[agent]\nn_steps = "x"',
            "mine.toml: n_steps: expected a whole number or none",
        ),
        ('task = "cartpole"\n[agent]\nnormalize_rewards = 3', "normalize_rewards: expected bool"),
        ('task = "cartpole"\nstop_at = nan', "stop_at must be a number, got nan"),
        ('task = "cartpole"\n[environment]\nimports = 3', "imports must be a list of texts"),
        ('task = "cartpole"\n[environment]\nkwarg = 3', "Did you mean kwargs"),
    ],
)
def test_files_that_do_not_fit(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(BadInput) as caught:
        plan(None, file)
    assert message in caught.value.format_message()


def test_a_file_is_not_for_another_environment(tmp_path: Path) -> None:
    """The run would be called after one environment and train on the other."""
    plan("cartpole").save(tmp_path / "config.json", {})
    (tmp_path / "best.toml").write_text('task = "cartpole"\n[environment]\nid = "CartPole-v1"\n')
    for name in ("config.json", "best.toml"):
        with pytest.raises(BadInput, match=r"for the environment CartPole-v1, pendulum means Pen"):
            plan("pendulum", tmp_path / name)
        assert plan("CartPole-v1", tmp_path / name).task == "CartPole-v1"


def test_no_value_in_a_file_is_the_text_none(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('task = "cartpole"\nstop_at = "none"\n[agent]\ntarget_kl = "none"\n')
    config = plan(None, file)
    assert (config.stop_at, config.agent["target_kl"]) == (None, None)


def test_a_file_imports_what_registers_its_task(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('task = "Breaks-v0"\n[environment]\nimports = ["cli_stub_envs"]\n')
    assert plan(None, file).environment.id == "Breaks-v0"


def test_an_argument_that_no_file_can_hold_is_refused() -> None:
    with pytest.raises(BadInput, match=r"--env-kwarg: kwargs\.size must be numbers, texts"):
        plan("cartpole", env_kwargs=["size={1, 2}"])


def test_each_argument_of_the_agent_can_be_set_or_has_an_option() -> None:
    arguments = set(inspect.signature(BatchPPO.__init__).parameters) - {"self", "unknown"}
    assert arguments <= set(settings._types()) | set(settings._OPTIONS)
    assert [key for key, kinds in settings._types().items() if not kinds] == []


def test_a_kind_of_value_that_is_not_known_is_left_to_the_agent() -> None:
    assert settings._types_of("float | None") == (float, type(None))
    assert settings._types_of("tuple[int, ...] | None") == ()


def box(*shape: int, dtype: type = np.uint8) -> spaces.Box:
    return spaces.Box(0, 255, shape, dtype)


@pytest.mark.parametrize(
    ("observations", "policy"),
    [
        (box(96, 96, 3), "CnnPolicy"),
        (box(210, 160, 3), "CnnPolicy"),
        (box(7, 7, 3), "MlpPolicy"),
        (box(4, 84, 84), "CnnPolicy"),
        (box(3, 12, 12), "MlpPolicy"),
        (box(4, 84, 84, 3), "MlpPolicy"),
        (box(84, 84, 3, dtype=np.float32), "MlpPolicy"),
        (box(4, dtype=np.float32), "MlpPolicy"),
        (spaces.Discrete(5), "MlpPolicy"),
        (spaces.Dict(image=box(48, 48, 1), speed=box(2, dtype=np.float32)), "MultiInputPolicy"),
        (spaces.Dict(image=box(7, 7, 1)), "MlpPolicy"),
        (spaces.Tuple([spaces.Discrete(2)]), "MlpPolicy"),
    ],
)
def test_the_policy_follows_from_the_observations(observations: spaces.Space, policy: str) -> None:
    assert suitable_policy(observations, spaces.Discrete(2)) == policy


def test_what_a_resumed_run_may_change() -> None:
    assert resumable_changes(TrainOptions(timesteps=5, stop_at=0.0)) == {
        "total_timesteps": 5,
        "stop_at": 0.0,
    }
    with pytest.raises(BadInput, match=r"--seed, --env-kwarg cannot be given with --resume"):
        resumable_changes(TrainOptions(timesteps=5, seed=0, env_kwargs=("a=1",)))


@pytest.mark.parametrize("task", ["", " "])
def test_a_task_has_a_name(task: str) -> None:
    with pytest.raises(BadInput, match="TASK must be a preset or the id"):
        plan(task)
