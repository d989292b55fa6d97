"""The program that a worker process runs: answers messages about its environments."""

from __future__ import annotations

import contextlib
import faulthandler
import io
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym

from batchgym import frames, pickling, watchdog
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
from batchgym.spin import Spin


def main(
    payload: bytes, command_fd: int, reply_fd: int, life_fd: int, memory_fd: int, parent_pid: int
) -> None:
    """Makes the environments and serves until the owner says `Close` or is gone.

    Args:
        payload: Pickled `Start`.
        command_fd: Pipe with the owner's frames.
        reply_fd: Pipe for the replies.
        life_fd: Pipe that the owner holds open as long as it lives.
        memory_fd: The shared memory file.
        parent_pid: The owner.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for fd in (command_fd, reply_fd, life_fd, memory_fd):
        os.set_inheritable(fd, False)  # not for programs that an environment starts
    watchdog.watch(life_fd, parent_pid)
    faulthandler.enable()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    with contextlib.suppress(EOFError, BrokenPipeError):  # the owner is gone
        _run(payload, command_fd, reply_fd, SharedMemory(memory_fd))


def _run(payload: bytes, command_fd: int, reply_fd: int, memory: SharedMemory) -> None:
    try:
        start: Start = pickle.loads(payload)
    except BaseException as error:  # noqa: BLE001 - unpickling runs the user's code
        failure = capture(error, -1, "unpickling of its env_fn")
        channel = frames.Channel(command_fd, reply_fd, Spin(0))
        channel.send(_encode(Reply(failures=[failure])))
        return
    channel = frames.Channel(command_fd, reply_fd, Spin(start.spin))
    _register(start.specs)
    reply = Reply()
    envs = _make_envs(start, reply)
    if reply.failures:
        channel.send(_encode(reply))
        return
    worker = _Worker(start, EnvSlice(envs, start.first, start.autoreset_mode, start.infos), memory)
    reply.value = Hello(
        tuple(env.observation_space for env in envs),
        tuple(env.action_space for env in envs),
        dict(envs[0].metadata),
        envs[0].render_mode,
    )
    channel.send(_encode(reply))
    try:
        worker.serve(channel)
    finally:
        worker.close()


def _register(specs: tuple[bytes, ...]) -> None:
    """Registers what the owner had registered: environments call `gymnasium.make` inside."""
    # The module of an environment registers its ids once more when it is imported here.
    warnings.filterwarnings("ignore", ".*Overriding environment .* already in registry")
    for data in specs:
        # A spec that cannot be unpickled here is none of this worker's business until it is made.
        with contextlib.suppress(Exception):
            for spec in pickle.loads(data):
                gym.registry.setdefault(spec.id, spec)


def _make_envs(start: Start, reply: Reply) -> list[gym.Env[Any, Any]]:
    envs: list[gym.Env[Any, Any]] = []
    for index, env_fn in enumerate(start.env_fns, start.first):
        try:
            envs.append(env_fn())
        except BaseException as error:  # noqa: BLE001 - the owner is told
            reply.failures.append(capture(error, index, "its env_fn"))
            break
    if reply.failures:
        for env in envs:
            with contextlib.suppress(Exception):  # the first failure is the one to report
                env.close()
    return envs


def _encode(reply: Reply) -> bytes:
    return frames.message(pickling.dump_reply(reply))


class _Worker:
    """Answers frames."""

    def __init__(self, start: Start, envs: EnvSlice, memory: SharedMemory) -> None:
        self._start = start
        self._envs = envs
        self._memory = memory
        self._closed = False
        self._handlers: dict[type[Any], Callable[[Any, Reply], None]] = {
            Setup: self._set_up,
            Call: lambda m, reply: self._envs.call(m.name, m.args, m.kwargs, reply),
            SetAttr: lambda m, reply: self._envs.set_attr(m.name, m.values, reply),
        }

    def serve(self, channel: frames.Channel) -> None:
        """Answers until told to close."""
        envs, reply = self._envs, Reply()
        while True:
            if channel.receive_just(frames.STEP):
                envs.step_all(envs.actions.take_all(), reply)
                if reply.is_done():
                    channel.send(frames.DONE)
                else:
                    channel.send(self._finish(reply))
                    reply = Reply()
                continue
            frame = channel.receive()
            if frame is None or self._answer(frame, channel):
                return

    def close(self) -> None:
        """Closes the environments, once."""
        if not self._closed:
            self._closed = True
            self._envs.close(Reply())

    def _answer(self, frame: frames.Frame, channel: frames.Channel) -> bool:
        """Answers a message; True if it was the last."""
        message = pickling.load(frame.body) if frame.code == frames.MESSAGE else None
        reply = Reply()
        if isinstance(message, Close):
            self._closed = True
            self._envs.close(reply)
            channel.send(self._finish(reply))
            return True
        if isinstance(message, (Schema, ActionDtypes)):
            self._install(message)
            return False
        if isinstance(message, (Step, Reset)):
            self._step_or_reset(message, channel)
            return False
        if message is None:  # a step that came together with another frame
            self._envs.step_all(self._envs.actions.take_all(), reply)
        else:
            try:
                self._handlers[type(message)](message, reply)
            except Exception as error:  # noqa: BLE001 - comparing spaces runs the user's code
                doing = type(message).__name__
                reply.failures.append(capture(error, self._envs.first, doing))
        channel.send(self._finish(reply))
        return False

    def _step_or_reset(self, message: Step | Reset, channel: frames.Channel) -> None:
        if not message.one_by_one:
            reply = Reply()
            if isinstance(message, Reset):
                self._envs.reset(message.slots, message.seeds, message.options, reply)
                if message.pend:
                    self._envs.pend_resets()
            else:
                self._envs.step_all(message.actions or (), reply)
            channel.send(self._finish(reply))
            return
        for position, slot in enumerate(message.slots):
            reply = Reply(env_index=self._envs.first + slot)
            if isinstance(message, Reset):
                self._envs.reset_one(slot, message.seeds[position], message.options, reply)
            elif message.actions is None:
                self._envs.step_one(slot, self._envs.actions.take(slot), reply)
            else:
                self._envs.step_one(slot, message.actions[position], reply)
            channel.send(self._finish(reply))

    def _finish(self, reply: Reply) -> bytes:
        """Encodes a reply; the usual one is a byte, or a few."""
        if reply.is_done():
            return frames.DONE if reply.env_index is None else frames.ready(reply.env_index)
        try:
            return _encode(reply)
        except Exception as error:  # noqa: BLE001 - pickling runs the user's code
            return _encode(self._unpicklable(reply, error))

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
