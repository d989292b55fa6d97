"""Answers to the owner's frames, whichever process steps the environments."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import gymnasium as gym

from batchgym import frames, pickling
from batchgym.buffers import map_buffers
from batchgym.env_slice import EnvSlice
from batchgym.failures import capture
from batchgym.memory import SharedMemory
from batchgym.messages import (
    ActionDtypes,
    Call,
    Close,
    Hello,
    Reply,
    Reset,
    Schema,
    SetAttr,
    Setup,
    Start,
    Step,
)

Send = Callable[[bytes], None]


def make_envs(
    start: Start, reply: Reply, caught: tuple[type[BaseException], ...] = (BaseException,)
) -> list[gym.Env[Any, Any]]:
    """Makes the environments of a slice; none is left open if one cannot be made.

    Args:
        start: What to make.
        reply: Where the failure is told, or else what the environments are like.
        caught: What counts as a failure.
    """
    envs: list[gym.Env[Any, Any]] = []
    for index, env_fn in enumerate(start.env_fns, start.first):
        try:
            env = env_fn()
            _refuse_twice(env, envs, start.first)
            envs.append(env)
        except caught as error:
            reply.failures.append(capture(error, index, "its env_fn"))
            break
    if reply.failures:
        for env in envs:
            with contextlib.suppress(Exception):  # the first failure is the one to report
                env.close()
        return envs
    reply.value = Hello(
        tuple(env.observation_space for env in envs),
        tuple(env.action_space for env in envs),
        dict(envs[0].metadata),
        envs[0].render_mode,
    )
    return envs


def _refuse_twice(env: gym.Env[Any, Any], envs: list[gym.Env[Any, Any]], first: int) -> None:
    for index, other in enumerate(envs, first):
        if env is other:
            raise ValueError(
                f"`env_fns[{first + len(envs)}]` and `env_fns[{index}]` return the same object, "
                "which would be stepped twice as often. Let each make an environment of its own."
            )


def encode_reply(reply: Reply) -> bytes:
    """Returns the frame of a reply."""
    return frames.message(pickling.dump_reply(reply))


class Responder:
    """Answers the owner's frames with what a slice of environments does.

    Args:
        envs: The slice.
        memory: Where shared arrays live.
    """

    def __init__(self, envs: EnvSlice, memory: SharedMemory) -> None:
        self._envs = envs
        self._memory = memory
        self._closed = False
        self._reply = Reply()

    def step(self) -> bytes:
        """Steps all environments with the shared actions; returns the frame that answers."""
        reply = self._reply
        try:
            self._envs.step_all(self._envs.actions.take_all(), reply)
        except BaseException:
            self._reply = Reply()  # what it holds is of a step that nobody is told of
            raise
        if reply.is_done():
            return frames.DONE
        self._reply = Reply()
        return self._finish(reply)

    def close(self) -> None:
        """Closes the environments, once."""
        if not self._closed:
            self._closed = True
            self._envs.close(Reply())

    def answer(self, frame: frames.Frame, send: Send) -> bool:
        """Answers a frame with one or more others, or none; True if it was the last."""
        message = pickling.load(frame.body) if frame.code == frames.MESSAGE else None
        reply = Reply()
        if isinstance(message, Close):
            self._closed = True
            self._envs.close(reply)
            send(self._finish(reply))
            return True
        if isinstance(message, (Schema, ActionDtypes)):
            self._install(message)
            return False
        if isinstance(message, (Step, Reset)):
            self._step_or_reset(message, send)
            return False
        if message is None:
            send(self.step())
            return False
        try:
            self._handle(message, reply)
        except Exception as error:  # noqa: BLE001 - comparing spaces runs the user's code
            reply.failures.append(capture(error, self._envs.first, type(message).__name__))
        send(self._finish(reply))
        return False

    def _handle(self, message: Setup | Call | SetAttr, reply: Reply) -> None:
        if isinstance(message, Setup):
            self._set_up(message, reply)
        elif isinstance(message, Call):
            self._envs.call(message.name, message.args, message.kwargs, reply)
        else:
            self._envs.set_attr(message.name, message.values, reply)

    def _step_or_reset(self, message: Step | Reset, send: Send) -> None:
        if not message.one_by_one:
            reply = Reply()
            if isinstance(message, Reset):
                self._envs.reset(message.slots, message.seeds, message.options, reply)
                if message.pend:
                    self._envs.pend_resets()
            else:
                self._envs.step_all(message.actions or (), reply)
            send(self._finish(reply))
            return
        for position, slot in enumerate(message.slots):
            reply = Reply(env_index=self._envs.first + slot)
            if isinstance(message, Reset):
                self._envs.reset_one(slot, message.seeds[position], message.options, reply)
            elif message.actions is None:
                self._envs.step_one(slot, self._envs.actions.take(slot), reply)
            else:
                self._envs.step_one(slot, message.actions[position], reply)
            send(self._finish(reply))

    def _finish(self, reply: Reply) -> bytes:
        """Encodes a reply; the usual one is a byte, or a few."""
        if reply.is_done():
            return frames.DONE if reply.env_index is None else frames.ready(reply.env_index)
        try:
            return encode_reply(reply)
        except Exception as error:  # noqa: BLE001 - pickling runs the user's code
            return encode_reply(self._unpicklable(reply, error))

    def _unpicklable(self, reply: Reply, error: Exception) -> Reply:
        """Replaces a reply that cannot be pickled by one that says where."""
        parts: list[tuple[int, str, Any]] = [
            *((i, "step or reset (its info)", info) for i, info in reply.infos.items()),
            *((i, "step or reset (its info)", info) for i, info in reply.raw_infos.items()),
            *((i, "step or reset (observation)", o) for i, o in reply.observations.items()),
        ]
        if isinstance(reply.value, list):
            parts += [
                (self._envs.first + slot, "call (its result)", value)
                for slot, value in enumerate(reply.value)
            ]
        failures = list(reply.failures)
        for env_index, doing, part in parts:
            try:
                pickling.dump_reply(part)
            except Exception as cause:  # noqa: BLE001 - pickling runs the user's code
                failures.append(capture(cause, env_index, doing))
        failures = failures or [capture(error, self._envs.first, "pickling of its reply")]
        return Reply(env_index=reply.env_index, failures=failures)

    def _set_up(self, setup: Setup, reply: Reply) -> None:
        buffers = map_buffers(
            self._memory,
            setup.region,
            setup.observation_space,
            setup.action_space,
            setup.num_envs,
            setup.shared,
        )
        self._envs.set_up(setup, buffers)
        reply.value = self._envs.check_spaces(setup)

    def _install(self, message: Schema | ActionDtypes) -> None:
        if isinstance(message, ActionDtypes):
            self._envs.actions.install(message.dtypes)
            return
        requests = [r for entry in message.entries for r in entry.requests(message.num_envs)]
        rows = slice(self._envs.first, self._envs.first + len(self._envs.envs))
        arrays = [array[rows] for array in self._memory.arrays(message.region, requests)]
        self._envs.infos.install(message.entries, arrays)
