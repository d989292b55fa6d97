"""What an agent may be given as its environment, turned into a vector environment."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from batchppo.errors import SpaceError

EnvLike = str | gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]


def as_vector_env(
    env: EnvLike, num_envs: int = 8, num_workers: int | None = None
) -> VectorEnv[Any, Any, Any]:
    """Returns a vector environment.

    Args:
        env: an id, which batchgym turns into `num_envs` environments in parallel; a vector
            environment, taken as it is; or a single environment, which becomes a vector
            environment of one.
        num_envs: how many environments an id gives.
        num_workers: how many worker processes they share; 0 steps them in this process. None is
            as many as there are cores, of which this process is one if the environment is
            Gymnasium's own: one that may crash, hang or print is better left to workers.

    Raises:
        TypeError: something else.
        ValueError: a vector environment that does not say how it resets.
    """
    if isinstance(env, str):
        # The one place where the agent asks for batchgym's environments.
        import batchgym

        return batchgym.make_vec(
            env,
            num_envs,
            num_workers=num_workers,
            owner_steps=None,
            autoreset_mode=AutoresetMode.SAME_STEP,
        )
    if isinstance(env, gymnasium.Env):
        single = _OwnObservations(env)
        return SyncVectorEnv([lambda: single], autoreset_mode=AutoresetMode.SAME_STEP)
    if isinstance(env, VectorEnv):
        autoreset_mode(env)
        _refuse_shared_copies(env)
        return env
    raise TypeError(
        f"env must be an id, a gymnasium.vector.VectorEnv or a gymnasium.Env; got {env!r} of type "
        f"{type(env).__name__}"
    )


class _OwnObservations(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Copies observations, whose shape it checks.

    An environment may write the first observation of an episode into the memory of the last one of
    the episode before, which SyncVectorEnv returns beside it.
    """

    def observation(self, observation: Any) -> Any:
        space = self.env.observation_space
        if space.shape is not None and np.shape(observation) != space.shape:
            raise SpaceError(
                f"{self.env} returned an observation of shape {np.shape(observation)}, its "
                f"observation_space is {space}; let reset and step return elements of that space"
            )
        return deepcopy(observation)


def share_environments(one: VectorEnv[Any, Any, Any], other: VectorEnv[Any, Any, Any]) -> bool:
    """Returns whether two vector environments are one object, or hold one as a copy."""
    return not _objects(one).isdisjoint(_objects(other))


def _objects(env: VectorEnv[Any, Any, Any]) -> set[int]:
    return {id(env.unwrapped), *_copies(env)}


def _copies(env: VectorEnv[Any, Any, Any]) -> list[int]:
    """Returns which objects the environments are, of a vector environment that holds them here."""
    return [id(copy.unwrapped) for copy in getattr(env.unwrapped, "envs", ())]


def autoreset_mode(env: VectorEnv[Any, Any, Any]) -> AutoresetMode:
    """Returns how a vector environment begins the next episode.

    Raises:
        ValueError: its metadata does not say so.
    """
    came = (env.metadata or {}).get("autoreset_mode")
    try:
        return AutoresetMode(came)
    except ValueError:
        raise ValueError(
            f"{env!r} has metadata['autoreset_mode'] = {came!r}, expected a "
            f"gymnasium.vector.AutoresetMode: without it the agent cannot tell transitions from "
            f"resets. Set env.metadata = {{**env.metadata, 'autoreset_mode': "
            f"AutoresetMode.NEXT_STEP}} (or the mode that it really has)"
        ) from None


def _refuse_shared_copies(env: VectorEnv[Any, Any, Any]) -> None:
    """Raises ValueError if two of the environments are one object, stepped twice as often."""
    seen: dict[int, int] = {}
    for i, copy in enumerate(_copies(env)):
        first = seen.setdefault(copy, i)
        if first != i:
            raise ValueError(
                f"environments {first} and {i} of {env!r} are the same object; make one each: "
                f"[lambda: make_env() for _ in range(n)] rather than [lambda: env] * n"
            )
