"""Proximal policy optimization in TensorFlow, for batches of environments.

Names are loaded when they are first used: `import batchppo` does not load TensorFlow, and neither
do `load_policy` and `evaluate_policy`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from batchppo import callbacks, errors, schedules
    from batchppo.config import PPOConfig
    from batchppo.evaluation import evaluate_policy
    from batchppo.in_graph_env import InGraphBatchEnv
    from batchppo.logger import Logger, configure_logger
    from batchppo.model_state import load_policy
    from batchppo.policy import Policy
    from batchppo.ppo import BatchPPO
    from batchppo.random_policy import RandomPolicy
    from batchppo.simulation import simulate

__version__ = "0.1.0"

__all__ = [
    "BatchPPO",
    "InGraphBatchEnv",
    "Logger",
    "PPOConfig",
    "Policy",
    "RandomPolicy",
    "callbacks",
    "configure_logger",
    "errors",
    "evaluate_policy",
    "load_policy",
    "schedules",
    "simulate",
]

_HOMES = {
    "BatchPPO": "ppo",
    "InGraphBatchEnv": "in_graph_env",
    "Logger": "logger",
    "PPOConfig": "config",
    "Policy": "policy",
    "RandomPolicy": "random_policy",
    "configure_logger": "logger",
    "evaluate_policy": "evaluation",
    "load_policy": "model_state",
    "simulate": "simulation",
}
_MODULES = ("callbacks", "errors", "schedules")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"batchppo.{name}")
    if name in _HOMES:
        return getattr(import_module(f"batchppo.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'batchppo' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
