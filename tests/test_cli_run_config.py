"""config.json: everything that determines a run."""

import json
from pathlib import Path

import pytest
from batchppo_cli.errors import BadInput
from batchppo_cli.run_config import EnvConfig, RunConfig

CONFIG = RunConfig(
    task="cartpole",
    environment=EnvConfig(
        id="CartPole-v1", kwargs={"sutton_barto_reward": True}, wrappers=("A", "B")
    ),
    total_timesteps=1000,
    num_envs=4,
    seed=7,
    eval_every=100,
    eval_episodes=5,
    agent={"learning_rate": "linear:1e-3", "policy_kwargs": {"net_arch": [32, 32]}},
)


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    CONFIG.save(path, {"command": "batchppo train cartpole"})
    assert RunConfig.load(path) == CONFIG
    assert json.loads(path.read_text())["about"] == {"command": "batchppo train cartpole"}
    assert [file.name for file in tmp_path.iterdir()] == ["config.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_env": 3}, "unknown setting 'num_env'. Did you mean num_envs?"),
        ({"format": 99}, "not the configuration of a run"),
        ({"environment": {"id": "A-v0", "kwarg": {}}}, "environment: unknown setting 'kwarg'"),
        ({"environment": "A-v0"}, "environment: expected an object, got 'A-v0'"),
        ({"environment": {}}, "missing 1 required"),
    ],
)
def test_what_does_not_fit_is_said(tmp_path: Path, change: dict, message: str) -> None:
    path = tmp_path / "config.json"
    CONFIG.save(path, {})
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(BadInput) as caught:
        RunConfig.load(path)
    assert message in caught.value.format_message()
    assert str(path) in caught.value.format_message()


@pytest.mark.parametrize("content", ["", "{", "[1]", "\x00"])
def test_what_is_no_configuration(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(BadInput, match=r"config\.json"):
        RunConfig.load(tmp_path / "config.json")
