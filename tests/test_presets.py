"""Presets: tasks with settings."""

import contextlib
import dataclasses
import json
import math
from typing import Any

import gymnasium
import pytest
from batchppo_cli.build import make_agent, make_training_env
from batchppo_cli.plan import TrainOptions, plan_runs
from batchppo_cli.presets import PRESETS
from batchppo_cli.presets_2017 import RECURRENT_GAUSSIAN
from batchppo_cli.run_config import RunConfig
from batchppo_cli.wrappers import load_wrapper

from batchppo.architecture import Architecture

TASKS = ["pendulum", "cartpole", "reacher", "cheetah", "walker", "hopper", "ant", "humanoid"]


def config_of(name: str, **options: Any) -> RunConfig:
    (config,) = plan_runs(name, None, None, TrainOptions(seed=0, **options))
    return config


def test_every_task_is_there_in_todays_and_in_the_first_settings() -> None:
    assert list(PRESETS) == [*TASKS, *(f"{task}-2017" for task in TASKS)]


@pytest.mark.parametrize("name", PRESETS)
def test_settings_are_allowed_and_survive_a_file(name: str, tmp_path: Any) -> None:
    config = config_of(name)  # checks the settings
    config.save(tmp_path / "config.json", about={})
    loaded = RunConfig.load(tmp_path / "config.json")
    as_read = json.loads(json.dumps(dataclasses.asdict(config)))
    assert json.loads(json.dumps(dataclasses.asdict(loaded))) == as_read
    assert config.environment.id in gymnasium.registry
    for wrapper in config.environment.wrappers:
        load_wrapper(wrapper)


@pytest.mark.parametrize("name", [name for name in PRESETS if name.endswith("-2017")])
def test_no_episode_of_the_first_batch_ppo_is_cut_by_a_rollout(name: str) -> None:
    """A rollout has whole episodes of the longest kind, and a minibatch divides it."""
    preset = PRESETS[name]
    rows = preset.num_envs * preset.agent["n_steps"]
    assert preset.agent["n_steps"] % (gymnasium.spec(preset.env_id).max_episode_steps or 1) == 0
    assert rows % preset.agent["batch_size"] == 0


def test_the_settings_of_2017_by_hand() -> None:
    agent = PRESETS["cheetah-2017"].agent
    assert (agent["learning_rate"], agent["n_epochs"], agent["gamma"]) == (1e-4, 25, 0.99)
    assert (agent["objective"], agent["kl_target"]) == ("kl_penalty", 0.01)
    assert (agent["kl_cutoff_factor"], agent["kl_cutoff_coef"]) == (2.0, 1000.0)
    architecture = Architecture.from_policy_kwargs(agent["policy_kwargs"])
    assert architecture == Architecture(
        pi=(200, 100), vf=(200, 100), activation="relu", ortho_init=False, output_init_scale=0.1,
        mean_activation="tanh", std_activation="softplus", log_std_init=math.log(0.35),
        adam_epsilon=1e-8,
    )  # fmt: skip


def train(name: str, *settings: str) -> Any:
    """Trains a preset with short rollouts, for two iterations, and returns the agent."""
    shorter = ("n_steps=20", "n_epochs=2", "batch_size=40", *settings)
    config = config_of(name, num_envs=4, num_workers=2, settings=shorter)
    with contextlib.closing(make_training_env(config)) as env:
        agent = make_agent(config, env, model=None)
        agent.learn(160)
    assert agent.num_timesteps == 160
    return agent


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_trains_by_name(name: str) -> None:
    agent = train(name)
    if name.endswith("-2017"):
        assert agent.architecture.pi == (200, 100)
        assert name == "cartpole-2017" or float(agent.action_space.high.max()) == 1.0


@pytest.mark.slow
def test_the_recurrent_network_of_2017_trains() -> None:
    kwargs = [f"policy_kwargs.{key}={value}" for key, value in RECURRENT_GAUSSIAN.items()]
    agent = train("pendulum-2017", "policy=MlpGruPolicy", "sequence_length=10", *kwargs)
    assert agent.architecture.front == (200,)
    assert agent.architecture.recurrent_size == 100
    assert not agent.architecture.critic_cell
