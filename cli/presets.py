"""Presets: tasks by name, with settings to train them.

What they reach is in `benchmarks/results/learning.csv`, which `benchmarks/learning.py` writes.
"""

from collections.abc import Mapping
from types import MappingProxyType

from .preset import Preset
from .presets_2017 import PRESETS_2017

_OWN = "batchppo"
_ZOO = "RL Zoo 2.9 (hyperparams/ppo.yml)"
# RL Zoo's settings of MuJoCo are for one environment and a rollout of `n_steps`; here the rollout
# has as many rows, from eight environments.
_ZOO_MUJOCO = f"{_ZOO}, its rollouts split over 8 environments"
_ZOO_NETWORK = MappingProxyType(
    {
        "net_arch": [256, 256],
        "activation_fn": "relu",
        "ortho_init": False,
        "log_std_init": -2.0,
    }
)

_TODAY: Mapping[str, Preset] = {
    "pendulum": Preset(
        env_id="Pendulum-v1",
        total_timesteps=200_000,
        num_envs=8,
        goal=-200.0,
        source=_OWN,
        agent={
            "learning_rate": 1e-3,
            "n_steps": 256,
            "batch_size": 256,
            "n_epochs": 10,
            "gamma": 0.9,
            "gae_lambda": 0.95,
        },
    ),
    "cartpole": Preset(
        env_id="CartPole-v1",
        total_timesteps=100_000,
        num_envs=8,
        goal=475.0,
        source=_OWN,
        agent={
            "learning_rate": "linear:1e-3",
            "clip_range": "linear:0.2",
            "n_steps": 128,
            "batch_size": 256,
            "n_epochs": 10,
            "gamma": 0.98,
            "gae_lambda": 0.9,
            # Positions and angles are small numbers already; scaled by what an agent saw
            # so far, some seeds drift off the track after 370 steps.
            "normalize_observations": False,
        },
    ),
    "reacher": Preset(
        env_id="Reacher-v5",
        total_timesteps=1_000_000,
        num_envs=8,
        goal=-5.0,
        source=f"{_ZOO_MUJOCO}; Reacher-v2",
        agent={
            "learning_rate": 1.04019e-4,
            "n_steps": 64,
            "batch_size": 32,
            "n_epochs": 5,
            "gamma": 0.9,
            "gae_lambda": 1.0,
            "clip_range": 0.3,
            "ent_coef": 7.52585e-8,
            "vf_coef": 0.950368,
            "max_grad_norm": 0.9,
        },
    ),
    "cheetah": Preset(
        env_id="HalfCheetah-v5",
        total_timesteps=1_000_000,
        num_envs=8,
        goal=4200.0,
        source=f"{_ZOO_MUJOCO}; HalfCheetah-v4",
        agent={
            "learning_rate": 2.0633e-5,
            "n_steps": 64,
            "batch_size": 64,
            "n_epochs": 20,
            "gamma": 0.98,
            "gae_lambda": 0.92,
            "clip_range": 0.1,
            "ent_coef": 4.01762e-4,
            "vf_coef": 0.58096,
            "max_grad_norm": 0.8,
            "policy_kwargs": dict(_ZOO_NETWORK),
        },
    ),
    "walker": Preset(
        env_id="Walker2d-v5",
        total_timesteps=1_000_000,
        num_envs=8,
        goal=2300.0,
        source=f"{_ZOO_MUJOCO}; Walker2d-v4",
        agent={
            "learning_rate": 5.05041e-5,
            "n_steps": 64,
            "batch_size": 32,
            "n_epochs": 20,
            "gamma": 0.99,
            "gae_lambda": 0.95,
            "clip_range": 0.1,
            "ent_coef": 5.85045e-4,
            "vf_coef": 0.871923,
            "max_grad_norm": 1.0,
        },
    ),
    "hopper": Preset(
        env_id="Hopper-v5",
        total_timesteps=1_000_000,
        num_envs=8,
        goal=2300.0,
        source=f"{_ZOO_MUJOCO}; Hopper-v4",
        agent={
            "learning_rate": 9.80828e-5,
            "n_steps": 64,
            "batch_size": 32,
            "n_epochs": 5,
            "gamma": 0.999,
            "gae_lambda": 0.99,
            "clip_range": 0.2,
            "ent_coef": 0.00229519,
            "vf_coef": 0.835671,
            "max_grad_norm": 0.7,
            "policy_kwargs": dict(_ZOO_NETWORK),
        },
    ),
    "ant": Preset(
        env_id="Ant-v5",
        total_timesteps=1_000_000,
        num_envs=8,
        goal=1300.0,
        source=f"{_ZOO_MUJOCO}; Ant-v4",
        agent={
            "learning_rate": 3e-4,
            "n_steps": 256,
            "batch_size": 64,
            "n_epochs": 10,
            "gamma": 0.99,
            "gae_lambda": 0.95,
        },
    ),
    "humanoid": Preset(
        env_id="Humanoid-v5",
        total_timesteps=10_000_000,
        num_envs=8,
        goal=None,
        source=f"{_ZOO_MUJOCO}; Humanoid-v4",
        agent={
            "learning_rate": 3.56987e-5,
            "n_steps": 64,
            "batch_size": 256,
            "n_epochs": 5,
            "gamma": 0.95,
            "gae_lambda": 0.9,
            "clip_range": 0.3,
            "ent_coef": 0.00238306,
            "vf_coef": 0.431892,
            "max_grad_norm": 2.0,
            "policy_kwargs": dict(_ZOO_NETWORK),
        },
    ),
}

PRESETS: Mapping[str, Preset] = MappingProxyType({**_TODAY, **PRESETS_2017})
