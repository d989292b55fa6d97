"""A Gymnasium plugin: vector environments whose environments live in worker processes.

Importing it gives every id in Gymnasium's registry a twin in the namespace `batchgym`:

    gymnasium.make_vec("batchgym:batchgym/CartPole-v1", num_envs=64)
"""

from typing import TYPE_CHECKING, Any

from batchgym import host

host.require_posix()

if TYPE_CHECKING:
    from batchgym.errors import (
        EnvironmentFailedError,
        EnvironmentPendingError,
        NothingPendingError,
        WorkerDiedError,
        WorkerStartError,
    )
    from batchgym.frame_delta import FrameDelta
    from batchgym.frame_history import FrameHistory
    from batchgym.mock_env import MockEnv
    from batchgym.random_start import RandomStart
    from batchgym.registration import make_vec, register_envs, spec
    from batchgym.vector_env import ProcessVectorEnv

__all__ = [
    "EnvironmentFailedError",
    "EnvironmentPendingError",
    "FrameDelta",
    "FrameHistory",
    "MockEnv",
    "NothingPendingError",
    "ProcessVectorEnv",
    "RandomStart",
    "WorkerDiedError",
    "WorkerStartError",
    "make_vec",
    "register_envs",
    "spec",
]

_MODULES = {
    "FrameDelta": "frame_delta",
    "FrameHistory": "frame_history",
    "MockEnv": "mock_env",
    "RandomStart": "random_start",
    "ProcessVectorEnv": "vector_env",
    "make_vec": "registration",
    "register_envs": "registration",
    "spec": "registration",
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is used: a worker uses none, and starts faster without."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'errors')}"), name)


if not host.in_worker():  # a worker makes environments from specs that it is sent
    __getattr__("register_envs")()
