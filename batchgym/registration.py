"""batchgym's ids in Gymnasium's registry, and environments from ids."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import VectorEnv

from batchgym.registered_specs import NAMESPACE
from batchgym.vector_env import ProcessVectorEnv

Wrapper = Callable[[gym.Env[Any, Any]], gym.Env[Any, Any]]

_VECTOR_KWARGS = (
    "shared_memory",
    "copy",
    "context",
    "daemon",
    "worker",
    "observation_mode",
    "autoreset_mode",
    "max_concurrency",
    "num_workers",
    "infos",
    "restart_workers",
    "start_timeout",
    "worker_environ",
)


def twin_id(env_id: str) -> str:
    """Returns batchgym's id for an id: `ALE/Pong-v5` becomes `batchgym/ALE-Pong-v5`."""
    return f"{NAMESPACE}/{env_id.replace('/', '-')}"


def spec(env_id: str | EnvSpec) -> EnvSpec:
    """Returns a spec that `gymnasium.make_vec` makes a ProcessVectorEnv from."""
    base = gym.spec(env_id) if isinstance(env_id, str) else env_id
    twin = copy.deepcopy(base)
    twin.id = twin_id(base.id)
    twin.namespace = NAMESPACE
    twin.name = twin.name if base.namespace is None else f"{base.namespace}-{twin.name}"
    twin.vector_entry_point = f"batchgym.entry:{base.id}"
    twin.additional_wrappers = ()
    return twin


def register_envs() -> None:
    """Gives every registered id its twin; can be called again for ids registered since."""
    for base in list(gym.registry.values()):
        if base.namespace != NAMESPACE and base.entry_point is not None:
            gym.registry.setdefault(twin_id(base.id), spec(base))


def make_vec(
    env_id: str | EnvSpec,
    num_envs: int = 1,
    *,
    wrappers: Sequence[Wrapper] = (),
    **kwargs: Any,
) -> VectorEnv[Any, Any, Any]:
    """Makes a vector environment of any registered id."""
    extra = {"env_wrappers": list(wrappers)} if wrappers else {}
    return gym.make_vec(spec(env_id), num_envs=num_envs, **extra, **kwargs)


def create(
    base: EnvSpec,
    num_envs: int,
    env_kwargs: Mapping[str, Any] | None = None,
    env_wrappers: Sequence[Wrapper] = (),
    **kwargs: Any,
) -> ProcessVectorEnv:
    """Makes the vector environment."""
    options = {name: kwargs.pop(name) for name in _VECTOR_KWARGS if name in kwargs}
    make_kwargs = {"disable_env_checker": True, **kwargs, **(env_kwargs or {})}
    wrappers = tuple(env_wrappers)

    def make_env() -> gym.Env[Any, Any]:
        env = gym.make(base, **make_kwargs)
        for wrapper in wrappers:
            env = wrapper(env)
        return env

    return ProcessVectorEnv([make_env] * num_envs, **options)
