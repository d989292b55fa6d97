"""config.json: everything that determines a run."""

import json
from pathlib import Path

import pytest
from batchppo_cli.errors import BadInput
from batchppo_cli.run_config import EnvConfig, RunConfig, load_about

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
        ({"environment": {}}, "environment: missing 'id'"),
        ({"environment": {"id": 3}}, "environment: id must be the id of an environment, got 3"),
        ({"environment": {"id": "A-v0", "wrappers": "A"}}, "wrappers must be a list of texts"),
        ({"environment": {"id": "A-v0", "imports": [1]}}, "imports must be a list of texts"),
        ({"environment": {"id": "A-v0", "kwargs": [1]}}, "kwargs must be a table"),
        ({"task": "../elsewhere"}, "task must be the name of a folder, got '../elsewhere'"),
        ({"task": ".."}, "task must be the name of a folder, got '..'"),
        ({"task": ""}, "task must be the name of a folder"),
        ({"seed": -1}, "seed must be a whole number from 0 to 4294967295, got -1"),
        ({"seed": [1]}, "seed must be a whole number"),
        ({"num_envs": 0}, "num_envs must be a whole number of at least 1, got 0"),
        ({"num_envs": True}, "num_envs must be a whole number of at least 1, got True"),
        ({"eval_every": 1.5}, "eval_every must be a whole number"),
        ({"stop_at": float("nan")}, "stop_at must be a number, got nan"),
        ({"stop_at": "high"}, "stop_at must be a number, got 'high'"),
        ({"agent": [1]}, "agent must be a table"),
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


@pytest.mark.parametrize("gone", [("task",), ("num_envs", "seed")])
def test_what_is_missing_is_named(tmp_path: Path, gone: tuple[str, ...]) -> None:
    path = tmp_path / "config.json"
    CONFIG.save(path, {})
    content = json.loads(path.read_text())
    path.write_text(json.dumps({key: content[key] for key in content if key not in gone}))
    with pytest.raises(BadInput) as caught:
        RunConfig.load(path)
    assert caught.value.format_message() == f"{path}: missing {', '.join(map(repr, gone))}"


def test_a_large_number_may_be_written_short(tmp_path: Path) -> None:
    assert CONFIG.updated({"total_timesteps": 1e6}, "").total_timesteps == 1_000_000


@pytest.mark.parametrize("value", [{1, 2}, b"x", 1j, {1: 2}, [{"a": {3}}]])
def test_what_a_file_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(BadInput, match=r"kwargs\.size must be"):
        EnvConfig(id="A-v0", kwargs={"size": value})


@pytest.mark.parametrize(
    ("about", "name"), [(3, "about"), ({"resumed": 3}, "about.resumed"), ({"git": 3}, "about.git")]
)
def test_where_a_run_comes_from_is_checked_too(tmp_path: Path, about: object, name: str) -> None:
    CONFIG.save(tmp_path / "config.json", {})
    content = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**content, "about": about}))
    with pytest.raises(BadInput, match=rf"config\.json: {name} must be"):
        load_about(tmp_path / "config.json")
