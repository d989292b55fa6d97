"""A worker's environments: steps, resets and calls them, and writes what they return."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.spaces.utils import is_space_dtype_shape_equiv
from gymnasium.vector import AutoresetMode

from batchgym.actions import ActionReceiver
from batchgym.autoreset import make_autoreset
from batchgym.buffers import Buffers
from batchgym.failures import capture
from batchgym.info_writer import InfoWriter
from batchgym.messages import Reply, Setup
from batchgym.observation_writer import Loose, make_writer


class EnvSlice:
    """Consecutive environments, counted from `first` by the owner and from 0 (slots) here.

    Args:
        envs: The environments.
        first: Index of the first one.
        mode: What happens at the end of an episode.
        infos: See InfoWriter.
        caught: What an environment may raise so that the owner is told and the others go on.
    """

    def __init__(
        self,
        envs: Sequence[gym.Env[Any, Any]],
        first: int,
        mode: AutoresetMode,
        infos: str | tuple[str, ...],
        caught: tuple[type[BaseException], ...] = (BaseException,),
    ) -> None:
        self.envs = envs
        self._caught = caught
        self.first = first
        self._slots = range(len(envs))
        self._autoreset = [make_autoreset(mode, env) for env in envs]
        self._steps = [autoreset.step for autoreset in self._autoreset]
        self.infos = InfoWriter(len(envs), infos)
        self._loose: Loose = {}
        self._ended = True  # what the flags say is not known

    def set_up(self, setup: Setup, buffers: Buffers) -> None:
        """Takes the shared arrays."""
        rows = slice(self.first, self.first + len(self.envs))
        self._rewards = buffers.rewards[rows]
        self._terminations = buffers.terminations[rows]
        self._truncations = buffers.truncations[rows]
        self.actions = ActionReceiver(setup.action_space, setup.num_envs, buffers.actions, rows)
        self._writers = [
            make_writer(
                setup.observation_space, buffers.observations, index, self._loose, setup.shared
            )
            for index in range(rows.start, rows.stop)
        ]

    def check_spaces(self, setup: Setup) -> tuple[list[bool], list[bool], list[bool]]:
        """Compares each environment's spaces: observation equal, alike; action equal."""
        wanted = setup.observation_space
        return (
            [env.observation_space == wanted for env in self.envs],
            [_is_alike(env.observation_space, wanted) for env in self.envs],
            [env.action_space == setup.action_space for env in self.envs],
        )

    def step_all(self, actions: Iterable[Any], reply: Reply) -> None:
        """Steps every environment; the one place where every nanosecond counts."""
        rewards: list[Any] = []
        ends: list[tuple[int, Any, Any]] = []
        infos: list[tuple[int, dict[Any, Any]]] = []
        for slot, step, write, action in zip(
            self._slots, self._steps, self._writers, actions, strict=True
        ):
            try:
                observation, reward, terminated, truncated, info = step(action)
                write(observation)
            except self._caught as error:
                reply.failures.append(capture(error, self.first + slot, "step"))
                rewards.append(0.0)
                continue
            rewards.append(reward)
            if terminated or truncated:
                ends.append((slot, terminated, truncated))
            if info:
                infos.append((slot, info))
        if ends or self._ended:
            self._write_ends(ends)
        try:
            self._rewards[:] = rewards
        except (TypeError, ValueError):
            self._write_rewards(rewards, reply)
        if infos or self.infos.has_written:
            self.infos.write(infos, reply, self.first)
        if self._loose:
            self._move_loose(reply)

    def step_one(self, slot: int, action: Any, reply: Reply) -> None:
        """Steps one environment and touches no other's rows."""
        try:
            observation, reward, terminated, truncated, info = self._steps[slot](action)
            self._writers[slot](observation)
            self._rewards[slot] = _scalar(reward, self.first + slot)
            self._terminations[slot] = terminated
            self._truncations[slot] = truncated
            self._ended = bool(self._ended or terminated or truncated)
            self.infos.write_slot(slot, info, reply, self.first)
        except self._caught as error:
            reply.failures.append(capture(error, self.first + slot, "step"))
        self._move_loose(reply)

    def reset(
        self,
        slots: Iterable[int],
        seeds: Iterable[int | None],
        options: dict[str, Any] | None,
        reply: Reply,
    ) -> None:
        """Resets some environments; the others have no info then, and keep their observation."""
        infos: list[tuple[int, dict[Any, Any]]] = []
        for slot, seed in zip(slots, seeds, strict=True):
            try:
                observation, info = self._autoreset[slot].reset(seed=seed, options=options)
                self._writers[slot](observation)
            except self._caught as error:
                reply.failures.append(capture(error, self.first + slot, "reset"))
                continue
            if info:
                infos.append((slot, info))
        self.infos.write(infos, reply, self.first)
        self._move_loose(reply)

    def reset_one(
        self, slot: int, seed: int | None, options: dict[str, Any] | None, reply: Reply
    ) -> None:
        """Resets one environment and touches no other's rows."""
        try:
            observation, info = self._autoreset[slot].reset(seed=seed, options=options)
            self._writers[slot](observation)
            self._rewards[slot] = 0.0
            self._terminations[slot] = self._truncations[slot] = False
            self.infos.write_slot(slot, info, reply, self.first)
        except self._caught as error:
            reply.failures.append(capture(error, self.first + slot, "reset"))
        self._move_loose(reply)

    def pend_resets(self) -> None:
        """Lets every environment look like one whose episode has just ended."""
        for autoreset in self._autoreset:
            autoreset.pend()

    def call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], reply: Reply) -> None:
        """Calls a method of every environment, or gets an attribute."""
        results = []
        for slot, env in enumerate(self.envs):
            try:
                attribute = env.get_wrapper_attr(name)
                results.append(attribute(*args, **kwargs) if callable(attribute) else attribute)
            except self._caught as error:
                reply.failures.append(capture(error, self.first + slot, name))
        reply.value = results

    def set_attr(self, name: str, values: Iterable[Any], reply: Reply) -> None:
        """Sets an attribute of every environment."""
        for slot, (env, value) in enumerate(zip(self.envs, values, strict=True)):
            try:
                env.set_wrapper_attr(name, value)
            except self._caught as error:
                reply.failures.append(capture(error, self.first + slot, f"set_attr({name!r})"))

    def close(self, reply: Reply) -> None:
        """Closes every environment, also after one has failed to."""
        for slot, env in enumerate(self.envs):
            try:
                env.close()
            except self._caught as error:
                reply.failures.append(capture(error, self.first + slot, "close"))

    def _write_ends(self, ends: list[tuple[int, Any, Any]]) -> None:
        """Writes the flags of a step: slot, terminated and truncated where one of both is set."""
        self._terminations[:] = False
        self._truncations[:] = False
        for slot, terminated, truncated in ends:
            self._terminations[slot] = terminated
            self._truncations[slot] = truncated
        self._ended = bool(ends)

    def _write_rewards(self, rewards: list[Any], reply: Reply) -> None:
        """Takes rewards that NumPy does not: arrays of one element, or of more by mistake."""
        for slot, reward in enumerate(rewards):
            try:
                self._rewards[slot] = _scalar(reward, self.first + slot)
            except (TypeError, ValueError) as error:
                self._rewards[slot] = 0.0
                reply.failures.append(capture(error, self.first + slot, "step"))

    def _move_loose(self, reply: Reply) -> None:
        if self._loose:
            reply.observations = dict(self._loose)
            self._loose.clear()


def _scalar(reward: Any, env_index: int) -> float:
    array: npt.NDArray[Any] = np.asarray(reward)
    if array.size != 1:
        raise ValueError(
            f"Environment {env_index} returned a reward of shape {array.shape}; "
            "expected one number. Let `step` return a float."
        )
    return float(array.reshape(()))


def _is_alike(space: gym.Space[Any], wanted: gym.Space[Any]) -> bool:
    if space == wanted:
        return True
    try:
        return bool(is_space_dtype_shape_equiv(space, wanted))
    except NotImplementedError:  # a custom space
        return False
