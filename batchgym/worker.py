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

import gymnasium as gym

from batchgym import frames, watchdog
from batchgym.env_slice import EnvSlice
from batchgym.failures import capture
from batchgym.memory import SharedMemory
from batchgym.messages import Reply, Start
from batchgym.responder import Responder, encode_reply, make_envs
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
        channel.send(encode_reply(Reply(failures=[failure])))
        return
    channel = frames.Channel(command_fd, reply_fd, Spin(start.spin))
    _register(start.specs)
    reply = Reply()
    envs = make_envs(start, reply)
    channel.send(encode_reply(reply))
    if reply.failures:
        return
    slice_ = EnvSlice(envs, start.first, start.autoreset_mode, start.infos)
    responder = Responder(slice_, memory)
    try:
        _serve(channel, responder)
    finally:
        responder.close()


def _serve(channel: frames.Channel, responder: Responder) -> None:
    """Answers until told to close, or the owner is gone."""
    while True:
        if channel.receive_just(frames.STEP):
            channel.send(responder.step())
            continue
        frame = channel.receive()
        if frame is None or responder.answer(frame, channel.send):
            return


def _register(specs: tuple[bytes, ...]) -> None:
    """Registers what the owner had registered: environments call `gymnasium.make` inside."""
    # The module of an environment registers its ids once more when it is imported here.
    warnings.filterwarnings("ignore", ".*Overriding environment .* already in registry")
    for data in specs:
        # A spec that cannot be unpickled here is none of this worker's business until it is made.
        with contextlib.suppress(Exception):
            for spec in pickle.loads(data):
                gym.registry.setdefault(spec.id, spec)
