"""Hyperparameters and architectures: typed, checked, immutable."""

import dataclasses
import inspect
import json

import numpy as np
import pytest

from batchppo import BatchPPO
from batchppo.architecture import Architecture
from batchppo.config import PPOConfig
from batchppo.schedules import LinearSchedule


def test_is_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        PPOConfig().gamma = 0.5


def test_the_agent_s_arguments_are_the_config_s_fields_with_the_same_defaults():
    parameters = inspect.signature(BatchPPO.__init__).parameters
    for field in dataclasses.fields(PPOConfig):
        assert parameters[field.name].default == field.default, field.name


def test_every_field_is_documented():
    source = inspect.getsource(PPOConfig)
    for field in dataclasses.fields(PPOConfig):
        after = source.split(f"    {field.name}: ", 1)[1].split("\n")[1]
        assert after.strip().startswith('"""'), field.name


def test_the_default_rollout_has_2048_rows():
    config = PPOConfig()
    assert [config.steps_for(n) for n in (1, 8, 64, 1024)] == [2048, 256, 32, 16]
    assert PPOConfig(n_steps=5).steps_for(64) == 5


@pytest.mark.parametrize(
    ("name", "value"),
    [("gamma", 1.1), ("gae_lambda", -0.1), ("batch_size", 0), ("n_epochs", 1.5), ("n_steps", 0),
     ("max_grad_norm", 0.0), ("target_kl", -1.0), ("clip_reward", float("inf")),
     ("learning_rate", -1.0), ("clip_range", "linear:-0.1"), ("ent_coef", "quick"),
     ("clip_range_vf", -0.2), ("gamma", float("nan")), ("n_steps", 2.5), ("n_steps", 10**400)],
)  # fmt: skip
def test_values_that_make_no_sense_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=name):
        PPOConfig(**{name: value})


OPTIONAL = ("n_steps", "clip_range_vf", "max_grad_norm", "target_kl")


@pytest.mark.parametrize("value", ["fast", None, [1], True])
@pytest.mark.parametrize("field", dataclasses.fields(PPOConfig), ids=lambda field: field.name)
def test_values_of_another_type_are_refused_by_name(field, value):
    if (value is None and field.name in OPTIONAL) or (value is True and field.type == "bool"):
        assert getattr(PPOConfig(**{field.name: value}), field.name) is value
        return
    with pytest.raises((TypeError, ValueError), match=f"^{field.name} must be"):
        PPOConfig(**{field.name: value})


def test_numbers_become_python_s_own():
    config = PPOConfig(n_steps=np.int64(5), batch_size=64.0, gamma=np.float32(0.5), target_kl=1)
    chosen = (config.n_steps, config.batch_size, config.gamma, config.target_kl)
    assert [type(value) for value in chosen] == [int, int, float, float]
    json.dumps(config.to_json())


def test_json_and_back():
    config = PPOConfig(learning_rate="linear:1e-3", n_steps=7, clip_range_vf=0.1, target_kl=None)
    again = PPOConfig.from_json(json.loads(json.dumps(config.to_json())))
    assert again == config
    assert again.learning_rate == LinearSchedule(1e-3)


def test_unknown_keys_are_refused_with_the_nearest_name():
    with pytest.raises(ValueError, match="'learning_rat'. Did you mean 'learning_rate'"):
        PPOConfig.from_json({"learning_rat": 1.0})


class ReLU:
    """Stands for torch.nn.ReLU, which is known by its name alone."""


@pytest.mark.parametrize(
    ("kwargs", "expected"),
    [
        ({}, Architecture()),
        ({"net_arch": [32]}, Architecture(pi=(32,), vf=(32,))),
        ({"net_arch": {"pi": [8, 8], "vf": []}}, Architecture(pi=(8, 8), vf=())),
        ({"activation_fn": "ReLU"}, Architecture(activation="relu")),
        ({"activation_fn": ReLU}, Architecture(activation="relu")),
        ({"ortho_init": False, "log_std_init": -2.0},
         Architecture(ortho_init=False, log_std_init=-2.0)),
        ({"optimizer_kwargs": {"eps": 1e-7}}, Architecture(adam_epsilon=1e-7)),
    ],
)  # fmt: skip
def test_policy_kwargs(kwargs, expected):
    assert Architecture.from_policy_kwargs(kwargs) == expected
    assert Architecture.from_json(json.loads(json.dumps(expected.to_json()))) == expected


@pytest.mark.parametrize(
    ("kwargs", "match"),
    [
        ({"netarch": [3]}, "'netarch'. Did you mean 'net_arch'"),
        ({"net_arch": 64}, "net_arch must be a list.*got 64"),
        ({"net_arch": [0]}, "net_arch must be a list"),
        ({"net_arch": {"qf": [3]}}, "unknown net_arch key 'qf'"),
        ({"activation_fn": "rleu"}, "'rleu'. Did you mean 'relu'"),
        ({"optimizer_kwargs": {"lr": 1}}, "unknown optimizer_kwargs key 'lr'"),
        ({"optimizer_kwargs": {"eps": -1}}, "adam_epsilon must be a positive number, got -1"),
        ({"optimizer_kwargs": {"eps": "x"}}, "adam_epsilon must be a number, got 'x'"),
        ({"log_std_init": float("nan")}, "log_std_init must be a finite number, got nan"),
        ({"log_std_init": None}, "log_std_init must be a number, got None"),
        ({"features_dim": 0}, "features_dim must be a whole number of at least 1, got 0"),
        ({"recurrent_size": -1}, "recurrent_size must be a whole number of at least 1, got -1"),
        ({"ortho_init": "no"}, "ortho_init must be True or False, got 'no'"),
        ({"output_init_scale": "x"}, "output_init_scale must be a number"),
    ],
)
def test_wrong_policy_kwargs(kwargs, match):
    with pytest.raises((ValueError, TypeError), match=match):
        Architecture.from_policy_kwargs(kwargs)
