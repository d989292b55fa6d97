"""What the constructor of ProcessVectorEnv accepts, checked."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from batchgym.host import usable_cores

ObservationMode = str | tuple[gym.Space[Any], gym.Space[Any]]
EnvFn = Callable[[], gym.Env[Any, Any]]


@dataclass(frozen=True)
class Options:
    """What the engine needs of the constructor arguments of ProcessVectorEnv; see there."""

    env_fns: Sequence[EnvFn]
    shared_memory: bool
    observation_mode: ObservationMode
    autoreset_mode: AutoresetMode
    num_workers: int
    owner_steps: bool
    infos: str | tuple[str, ...]
    restart_workers: int
    start_timeout: float | None
    worker_environ: Mapping[str, str]


def check_options(
    *,
    env_fns: Sequence[EnvFn],
    shared_memory: bool,
    worker: object,
    context: str | None,
    observation_mode: ObservationMode,
    autoreset_mode: str | AutoresetMode,
    max_concurrency: int | None,
    num_workers: int | None,
    owner_steps: bool,
    infos: str | Sequence[str],
    restart_workers: int,
    start_timeout: float | None,
    worker_environ: Mapping[str, str] | None,
) -> Options:
    """Checks constructor arguments; raises ValueError, TypeError or IndexError."""
    if worker is not None:
        raise ValueError(
            "`worker` must be None: a worker of ProcessVectorEnv owns several environments, so "
            "that a function that serves one cannot be used. Put its logic into a wrapper of the "
            "environment, or use gymnasium.vector.AsyncVectorEnv."
        )
    num_envs = check_env_fns(env_fns)
    check_context(context)
    check_observation_mode(observation_mode)
    check_max_concurrency(max_concurrency)
    if start_timeout is not None and not start_timeout > 0:
        raise ValueError(f"`start_timeout` must be positive or None, got {start_timeout!r}.")
    return Options(
        env_fns=env_fns,
        shared_memory=bool(shared_memory),
        observation_mode=observation_mode,
        autoreset_mode=AutoresetMode(autoreset_mode),
        num_workers=check_num_workers(num_workers, num_envs, max_concurrency, bool(owner_steps)),
        owner_steps=bool(owner_steps),
        infos=check_infos(infos),
        restart_workers=check_count("restart_workers", restart_workers),
        start_timeout=start_timeout,
        worker_environ={str(k): str(v) for k, v in (worker_environ or {}).items()},
    )


def check_num_workers(
    num_workers: int | None, num_envs: int, limit: int | None, owner_steps: bool
) -> int:
    """Returns the number of worker processes.

    By default one per usable core, of which the owner takes one if it steps itself; never so many
    that one has no environment.

    Raises:
        TypeError: If it is no integer.
        ValueError: If it is negative, or nobody is left to step.
    """
    own = int(owner_steps)
    if num_workers is None:
        num_workers = usable_cores() - own
    if isinstance(num_workers, bool) or not isinstance(num_workers, (int, np.integer)):
        raise TypeError(f"`num_workers` must be an integer or None, got {num_workers!r}.")
    if num_workers < 1 - own:
        alone = "" if own else " With `owner_steps=True` it may be 0: this process steps them all."
        raise ValueError(f"`num_workers` must be at least {1 - own}, got {num_workers}.{alone}")
    return min(int(num_workers), num_envs - own, *([] if limit is None else [int(limit) - own]))


def check_env_fns(env_fns: Sequence[EnvFn]) -> int:
    """Returns the number of environments.

    Raises:
        TypeError: If it is no sequence of callables.
        IndexError: If it is empty.
    """
    num_envs = len(env_fns)
    if num_envs == 0:
        raise IndexError(
            "`env_fns` is empty; pass at least one function that makes an environment."
        )
    for index, env_fn in enumerate(env_fns):
        if not callable(env_fn):
            raise TypeError(
                f"`env_fns[{index}]` is {env_fn!r}; expected a function that makes an environment."
            )
    return num_envs


def check_max_concurrency(max_concurrency: int | None) -> None:
    """Raises ValueError unless it is None or a positive integer."""
    if max_concurrency is None:
        return
    if not isinstance(max_concurrency, (int, np.integer)):
        raise ValueError(
            f"`max_concurrency` must be an integer or None, got {type(max_concurrency)}."
        )
    if max_concurrency < 1:
        raise ValueError(f"`max_concurrency` must be a positive or None, got {max_concurrency}.")


def check_context(context: str | None) -> None:
    """Raises ValueError unless multiprocessing has this start method."""
    if context is not None and context not in multiprocessing.get_all_start_methods():
        raise ValueError(f"cannot find context for {context!r}")


def check_observation_mode(mode: ObservationMode) -> None:
    """Raises ValueError, or TypeError for a pair of something else than spaces."""
    if isinstance(mode, tuple) and len(mode) == 2:
        if not all(isinstance(space, gym.Space) for space in mode):
            raise TypeError(
                "Expected both elements of observation_mode to be Spaces, "
                f"got {type(mode[0])} and {type(mode[1])}"
            )
    elif mode not in ("same", "different"):
        raise ValueError(
            "Invalid `observation_mode`, expected: 'same' or 'different' or tuple of single and "
            f"batch observation space, actual got {mode}"
        )


def check_infos(infos: str | Sequence[str]) -> str | tuple[str, ...]:
    """Returns `"all"`, `"none"`, or a tuple of keys.

    Raises:
        ValueError: If it is another string.
        TypeError: If a key is no string.
    """
    if isinstance(infos, str):
        if infos not in ("all", "none"):
            raise ValueError(f'`infos` must be "all", "none" or a list of keys, got {infos!r}.')
        return infos
    keys = tuple(infos)
    if not all(isinstance(key, str) for key in keys):
        raise TypeError(f"The keys in `infos` must be strings, got {keys!r}.")
    return keys


def check_count(name: str, value: int) -> int:
    """Returns a non-negative integer, raises TypeError or ValueError."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"`{name}` must be an integer, got {value!r}.")
    if value < 0:
        raise ValueError(f"`{name}` must not be negative, got {value}.")
    return int(value)
