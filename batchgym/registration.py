"""batchgym's ids in Gymnasium's registry, and vector environments from ids."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import (
    EnvSpec,
    find_highest_version,
    get_env_id,
    load_env_creator,
    parse_env_id,
)
from gymnasium.vector import VectorEnv

from batchgym.registered_specs import NAMESPACE
from batchgym.twin import ENTRY, Twin
from batchgym.vector_env import ProcessVectorEnv

Wrapper = Callable[[gym.Env[Any, Any]], gym.Env[Any, Any]]

# Arguments of ProcessVectorEnv that `make_vec` takes among those of the environment. An environment
# that has one of the same name gets it through `env_kwargs`.
VECTOR_KWARGS = (
    "shared_memory",
    "copy",
    "context",
    "daemon",
    "observation_mode",
    "autoreset_mode",
    "max_concurrency",
    "num_workers",
    "owner_steps",
    "infos",
    "restart_workers",
    "start_timeout",
    "worker_environ",
)


def spec(env_id: str | EnvSpec) -> EnvSpec:
    """Returns a spec from which `gymnasium.make_vec` makes a ProcessVectorEnv.

    It works for ids that were registered after batchgym was imported, and needs no entry in the
    registry of its own.

    Args:
        env_id: A registered id, as `gymnasium.make` takes it (`"module:Env-v0"` imports the
            module first, an id without version is its newest), or a spec.

    Raises:
        gymnasium.error.Error: If the id is not registered.
    """
    if isinstance(env_id, EnvSpec):
        return env_id if isinstance(env_id, Twin) else Twin.of(env_id)
    module, _, name = env_id.rpartition(":")
    if module:
        importlib.import_module(module)
    namespace, plain_name, version = parse_env_id(name)
    if version is None:
        version = find_highest_version(namespace, plain_name)
    found = gym.spec(get_env_id(namespace, plain_name, version))
    return found if found.namespace == NAMESPACE else Twin.of(found)


def register_envs() -> None:
    """Gives every registered id a twin in the namespace `batchgym`.

    Importing batchgym does this once; call it again for ids that were registered since.
    `ALE/Pong-v5` becomes `batchgym/ALE-Pong-v5`, as an id has one namespace only.
    """
    for base in list(gym.registry.values()):
        if base.namespace != NAMESPACE and base.entry_point is not None:
            twin = Twin.of(base)
            if gym.registry.get(twin.id) != twin:
                gym.registry[twin.id] = twin


def make_vec(
    id: str | EnvSpec,  # noqa: A002 - as in gymnasium.make_vec
    num_envs: int = 1,
    *,
    wrappers: Sequence[Wrapper | str] = (),
    **kwargs: Any,
) -> VectorEnv[Any, Any, Any]:
    """Makes a vector environment of any registered id, with process workers.

    Args:
        id: A registered id of an environment, such as `"CartPole-v1"`, or a spec.
        num_envs: Number of environments.
        wrappers: Applied to each environment, in its worker: functions or classes, or their names
            as `"module:name"`.
        **kwargs: Arguments of ProcessVectorEnv (`num_workers`, `autoreset_mode`, `infos`, ...) and
            of the environment; `env_kwargs={...}` is for those of the environment alone.
            `owner_steps=None` says yes where nothing speaks against it: for environments of
            Gymnasium's own, without wrappers, unless `num_workers` asks for processes; and for
            `num_workers=0`, as nobody else is left.

    Returns:
        A ProcessVectorEnv whose `spec` makes the same once more.

    Raises:
        gymnasium.error.Error: If the id is not registered.
    """
    if wrappers:
        kwargs["env_wrappers"] = list(wrappers)
    return gym.make_vec(spec(id), num_envs=num_envs, **kwargs)


def create(
    base: EnvSpec,
    *,
    num_envs: int,
    env_kwargs: Mapping[str, Any] | None = None,
    env_wrappers: Sequence[Wrapper | str] = (),
    **kwargs: Any,
) -> ProcessVectorEnv:
    """Makes the vector environment of a twin; called by `gymnasium.make_vec`.

    Args:
        base: Spec of the environment; the spec itself goes to the workers, whose registry may
            lack it.
        num_envs: Number of environments.
        env_kwargs: Arguments of the environment.
        env_wrappers: See `wrappers` of `make_vec`.
        **kwargs: Arguments of ProcessVectorEnv, of `gymnasium.make` and of the environment.
    """
    if not isinstance(num_envs, int) or isinstance(num_envs, bool) or num_envs < 1:
        raise ValueError(f"`num_envs` must be a positive integer, got {num_envs!r}.")
    options = {name: kwargs.pop(name) for name in VECTOR_KWARGS if name in kwargs}
    if options.get("owner_steps", False) is None:
        trusted = _is_gymnasiums(base) and not env_wrappers
        options["owner_steps"] = {None: trusted, 0: True}.get(options.get("num_workers"), False)
    # The checker that `gymnasium.make` adds would cost each step a fifth of its time.
    make_kwargs = {"disable_env_checker": True, **kwargs, **(env_kwargs or {})}
    wrappers: list[Any] = [
        load_env_creator(wrapper) if isinstance(wrapper, str) else wrapper
        for wrapper in env_wrappers
    ]

    def make_env() -> gym.Env[Any, Any]:
        env: gym.Env[Any, Any] = gym.make(base, **make_kwargs)
        for wrapper in wrappers:
            env = wrapper(env)
        return env

    return ProcessVectorEnv([make_env] * num_envs, **options)


def _is_gymnasiums(base: EnvSpec) -> bool:
    """Says whether Gymnasium brings the environment, which is not expected to crash or to hang."""
    entry_point = gym.registry.get(base.id, base).entry_point
    return isinstance(entry_point, str) and entry_point.startswith("gymnasium.envs.")


def creator_of(base_id: str) -> Callable[..., ProcessVectorEnv]:
    """Returns the creator of an id's twin, see `batchgym.entry`."""

    def create_vector_env(**kwargs: Any) -> ProcessVectorEnv:
        return create(Twin.base_of(base_id), **kwargs)

    create_vector_env.__name__ = f"{ENTRY}:{base_id}"
    return create_vector_env
