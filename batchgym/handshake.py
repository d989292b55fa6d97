"""From started processes to environments whose spaces are known and whose arrays are shared."""

from __future__ import annotations

import multiprocessing
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
from gymnasium.vector.utils import batch_differing_spaces, batch_space

from batchgym.buffers import Buffers, buffer_requests, map_buffers
from batchgym.errors import WorkerStartError
from batchgym.failures import restore
from batchgym.memory import SharedMemory
from batchgym.messages import Hello, Reply, Setup
from batchgym.options import ObservationMode
from batchgym.pool import WorkerPool, encode


@dataclass(frozen=True)
class Spaces:
    """Spaces of a vector environment."""

    single_observation: gym.Space[Any]
    observation: gym.Space[Any]
    single_action: gym.Space[Any]
    action: gym.Space[Any]


def greet(pool: WorkerPool, timeout: float | None) -> list[Hello]:
    """Waits until every worker has made its environments.

    Raises:
        WorkerStartError: If that takes more than `timeout` seconds.
        WorkerDiedError: If a worker dies meanwhile.
        Exception: Whatever an environment function raises.
    """
    for worker in pool.workers:
        worker.outstanding += 1
    try:
        replies = pool.gather(timeout, "start")
    except multiprocessing.TimeoutError as error:
        raise WorkerStartError(
            f"The environments were not made within {timeout} seconds (`start_timeout`): {error}"
        ) from None
    _raise_failures(pool, replies)
    return [reply.value for reply in replies]


def batch_spaces(hellos: list[Hello], num_envs: int, mode: ObservationMode) -> Spaces:
    """Works out the spaces of the batch from those of the environments."""
    single_action = hellos[0].action_spaces[0]
    single = hellos[0].observation_spaces[0]
    if isinstance(mode, tuple):
        observation, single = mode
    elif mode == "different":
        observation = batch_differing_spaces([s for h in hellos for s in h.observation_spaces])
    else:
        observation = batch_space(single, num_envs)
    return Spaces(single, observation, single_action, batch_space(single_action, num_envs))


def share_buffers(
    pool: WorkerPool,
    memory: SharedMemory,
    spaces: Spaces,
    num_envs: int,
    shared: bool,
    mode: ObservationMode,
) -> tuple[Setup, Buffers]:
    """Makes the shared arrays, and lets the workers compare their spaces.

    Raises:
        WorkerStartError: If the memory is not there.
        RuntimeError: If spaces differ.
    """
    arguments = (spaces.single_observation, spaces.single_action, num_envs, shared)
    region = memory.extend(buffer_requests(*arguments))
    setup = Setup(num_envs, spaces.single_observation, spaces.single_action, region, shared)
    pool.request([encode(setup)] * len(pool.workers))
    replies = pool.gather(None, "start")
    _raise_failures(pool, replies)
    _check_alike(replies, spaces, mode)
    return setup, map_buffers(memory, region, *arguments)


def _check_alike(replies: list[Reply], spaces: Spaces, mode: ObservationMode) -> None:
    equal, alike, actions_equal = (
        [same for reply in replies for same in reply.value[kind]] for kind in range(3)
    )
    if mode == "same" and not all(equal):
        raise RuntimeError(
            "ProcessVectorEnv(..., observation_mode='same') however some of the sub-environments "
            "observation spaces are not equivalent. If this is intentional, use "
            "`observation_mode='different'` instead. "
            f"Environment {equal.index(False)} differs from {spaces.single_observation}."
        )
    if not all(alike):
        raise RuntimeError(
            "ProcessVectorEnv(..., observation_mode='different' or custom space) however the "
            "sub-environment's observation spaces do not share a common shape and dtype. "
            f"Environment {alike.index(False)} differs from {spaces.single_observation}."
        )
    if not all(actions_equal):
        raise RuntimeError(
            f"Some environments have an action space different from `{spaces.single_action}`. "
            "In order to batch actions, the action spaces from all environments must be equal. "
            f"The first is environment {actions_equal.index(False)}."
        )


def _raise_failures(pool: WorkerPool, replies: list[Reply]) -> None:
    for death in pool.deaths.values():
        raise death
    for reply in replies:
        for failure in reply.failures:
            raise restore(failure)
