"""The settings of the first batch-ppo (2017), on today's environments: `<task>-2017`.

What differs from it, and why, is in `docs/original.md`.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from .preset import Preset

_EPISODES = 30  # environments that the first batch-ppo stepped in parallel
_SOURCE = "batch-ppo 1.4.0 (agents/scripts/configs.py)"
# Its actions, and the means of its policy, were between -1 and 1.
_RESCALE_ACTION = "RescaleAction(min_action=-1, max_action=1)"

CATEGORICAL: Mapping[str, Any] = MappingProxyType(
    {
        "net_arch": [200, 100],
        "activation_fn": "relu",
        "ortho_init": False,
        "output_init_scale": 0.1,
        "optimizer_kwargs": {"eps": 1e-8},
    }
)
"""`feed_forward_categorical`, as `policy_kwargs`."""

GAUSSIAN: Mapping[str, Any] = MappingProxyType(
    {
        **CATEGORICAL,
        "mean_activation": "tanh",
        "std_activation": "softplus",
        "log_std_init": math.log(0.35),
    }
)
"""`feed_forward_gaussian`, as `policy_kwargs`."""

RECURRENT_GAUSSIAN: Mapping[str, Any] = MappingProxyType(
    {
        **GAUSSIAN,
        "net_arch": {"front": [200], "pi": [], "vf": [200, 100]},
        "recurrent_size": 100,
        "enable_critic_lstm": False,
    }
)
"""`recurrent_gaussian`, as `policy_kwargs` of "MlpGruPolicy"."""


def _preset(
    env_id: str,
    total_timesteps: int,
    *,
    n_steps: int,
    batch_size: int | None = None,
    gamma: float = 0.995,
    goal: float | None = None,
    network: Mapping[str, Any] = GAUSSIAN,
    policy: str = "MlpPolicy",
) -> Preset:
    """Return a preset with the defaults of the first batch-ppo.

    Args:
        env_id: Today's id.
        total_timesteps: Steps of its training phases.
        n_steps: Steps per environment and rollout, in place of its 30 episodes.
        batch_size: Rows of a minibatch; None for the whole rollout, as where it had no chunks.
        gamma: Discount.
        goal: Mean return to reach.
        network: `policy_kwargs`.
        policy: The policy's name.
    """
    return Preset(
        env_id=env_id,
        total_timesteps=total_timesteps,
        num_envs=_EPISODES,
        goal=goal,
        wrappers=() if network is CATEGORICAL else (_RESCALE_ACTION,),
        source=_SOURCE,
        agent={
            "policy": policy,
            "learning_rate": 1e-4,
            "n_steps": n_steps,
            "batch_size": batch_size or n_steps * _EPISODES,
            "n_epochs": 25,
            "gamma": gamma,
            "gae_lambda": 1.0,
            "objective": "kl_penalty",
            "kl_target": 0.01,
            "kl_init_penalty": 1.0,
            "kl_cutoff_factor": 2.0,
            "kl_cutoff_coef": 1000.0,
            "max_grad_norm": None,
            "clip_observation": 5.0,
            "clip_reward": 10.0,
            "policy_kwargs": dict(network),
        },
    )


PRESETS_2017: Mapping[str, Preset] = MappingProxyType(
    {
        # 20 chunks of 50 steps were a minibatch.
        "pendulum-2017": _preset(
            "Pendulum-v1", 1_000_000, n_steps=200, batch_size=1000, goal=-250.0
        ),
        "cartpole-2017": _preset(
            "CartPole-v1", 200_000, n_steps=500, goal=300.0, network=CATEGORICAL
        ),
        # Episodes of Reacher last 50 steps, whatever its `max_length` of 1000 says.
        "reacher-2017": _preset("Reacher-v5", 5_000_000, n_steps=100, gamma=0.985),
        "cheetah-2017": _preset("HalfCheetah-v5", 10_000_000, n_steps=1000, gamma=0.99),
        "walker-2017": _preset("Walker2d-v5", 10_000_000, n_steps=1000),
        "hopper-2017": _preset("Hopper-v5", 10_000_000, n_steps=2000),
        "ant-2017": _preset("Ant-v5", 20_000_000, n_steps=1000),
        "humanoid-2017": _preset("Humanoid-v5", 50_000_000, n_steps=2000),
    }
)
