"""A Gymnasium plugin: vector environments whose environments live in worker processes.

Importing it gives every id in Gymnasium's registry a twin in the namespace `batchgym`:

    gymnasium.make_vec("batchgym:batchgym/CartPole-v1", num_envs=64)
"""

from batchgym import host

host.require_posix()

from batchgym.bootstrap import in_worker  # noqa: E402
from batchgym.errors import (  # noqa: E402
    EnvironmentFailedError,
    EnvironmentPendingError,
    NothingPendingError,
    WorkerDiedError,
    WorkerStartError,
)
from batchgym.registration import make_vec, register_envs, spec  # noqa: E402
from batchgym.vector_env import ProcessVectorEnv  # noqa: E402

__all__ = [
    "EnvironmentFailedError",
    "EnvironmentPendingError",
    "NothingPendingError",
    "ProcessVectorEnv",
    "WorkerDiedError",
    "WorkerStartError",
    "make_vec",
    "register_envs",
    "spec",
]

if not in_worker():  # a worker makes environments from specs that it is sent
    register_envs()
