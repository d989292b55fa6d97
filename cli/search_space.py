"""The hyperparameters that a search tries."""

from typing import Any

import optuna

_NETWORKS = {"small": [64, 64], "medium": [256, 256]}
# Rows of a rollout, over all environments.
_ROLLOUTS = (256, 512, 1024, 2048, 4096, 8192)


def suggest(trial: optuna.Trial, num_envs: int) -> dict[str, Any]:
    """Return arguments of `batchppo.BatchPPO` to try next.

    The ranges are about those of the RL Zoo (Raffin 2020). Discount and trace decay are searched
    by how far they are from 1, which is what matters.

    Args:
        trial: Suggests the values.
        num_envs: Environments in parallel.
    """
    rows = trial.suggest_categorical("rows", _ROLLOUTS)
    return {
        "learning_rate": trial.suggest_float("learning_rate", 1e-5, 3e-3, log=True),
        "n_steps": max(1, rows // num_envs),
        "batch_size": trial.suggest_categorical("batch_size", (64, 128, 256, 512, 1024)),
        "n_epochs": trial.suggest_categorical("n_epochs", (3, 5, 10, 20)),
        "gamma": 1.0 - trial.suggest_float("one_minus_gamma", 1e-4, 0.1, log=True),
        "gae_lambda": 1.0 - trial.suggest_float("one_minus_gae_lambda", 5e-3, 0.3, log=True),
        "clip_range": trial.suggest_categorical("clip_range", (0.1, 0.2, 0.3)),
        "ent_coef": trial.suggest_float("ent_coef", 1e-8, 0.1, log=True),
        "max_grad_norm": trial.suggest_float("max_grad_norm", 0.3, 2.0, log=True),
        "policy_kwargs": {
            "net_arch": _NETWORKS[trial.suggest_categorical("network", tuple(_NETWORKS))],
            "activation_fn": trial.suggest_categorical("activation_fn", ("tanh", "relu")),
        },
    }
