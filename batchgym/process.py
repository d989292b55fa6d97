"""The owner's handle on one worker process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from typing import Any

from batchgym import frames, pickling
from batchgym.bootstrap import start_program
from batchgym.errors import WorkerDiedError
from batchgym.messages import Reply, Start
from batchgym.spin import Spin

_TERMINATE_SECONDS = 0.5


class WorkerProcess:
    """Starts a worker, exchanges frames with it, and ends it.

    Args:
        name: Shown in the process list.
        start: What the worker owns.
        memory_fd: The shared memory file.
        stdout: Descriptor for the worker's output.
        stderr: Descriptor for the worker's errors.
        environ: Additional environment variables.

    Raises:
        OSError: If descriptors or processes run out; nothing is left open then.
    """

    def __init__(
        self,
        name: str,
        start: Start,
        memory_fd: int,
        stdout: int,
        stderr: int,
        environ: Mapping[str, str],
    ) -> None:
        self.index = start.worker
        self.env_indices = range(start.first, start.first + len(start.env_fns))
        payload = _pickle_start(start)
        with contextlib.ExitStack() as on_error, contextlib.ExitStack() as childs:
            command_r, command_w = _pipe(childs, on_error)
            reply_w, reply_r = _pipe(childs, on_error, reverse=True)
            life_r, self._life_fd = _pipe(childs, on_error)
            fds = (command_r, reply_w, life_r, memory_fd)
            self.popen = start_program(name, payload, fds, stdout, stderr, environ)
            on_error.pop_all()
        os.set_blocking(command_w, False)
        self._channel = frames.Channel(
            reply_r, command_w, Spin(start.spin), drain_while_writing=True
        )
        self._open = self._commanding = True
        self._killed = False
        self.outstanding = 0

    @property
    def fd(self) -> int:
        """Pipe that can be read when an answer comes."""
        return self._channel.read_fd

    @property
    def pid(self) -> int:
        """Process id."""
        return self.popen.pid

    def is_alive(self) -> bool:
        """Says whether the process runs."""
        return self.popen.poll() is None

    def post(self, data: bytes) -> None:
        """Sends a frame that is not answered."""
        try:
            self._channel.send(data)
        except BrokenPipeError:
            return  # `receive` will notice, and report the exit code

    def post_now(self, data: bytes) -> None:
        """Sends a frame, unless the worker does not read: then it is hung up on."""
        # A frame cut short would be no frame; a worker that reads again sees the end of the pipe.
        with contextlib.suppress(BrokenPipeError):
            if not self._channel.try_send(data):
                self.hang_up()

    def hang_up(self) -> None:
        """Closes the pipe to the worker, which then closes its environments and ends."""
        if self._commanding:
            self._commanding = False
            os.close(self._channel.write_fd)

    def request(self, data: bytes, answers: int = 1) -> None:
        """Sends a frame that is answered."""
        self.outstanding += answers
        self.post(data)

    def receive(self, timeout: float | None, during: str) -> frames.Frame | None:
        """Returns the next answer, None after `timeout` seconds.

        Raises:
            WorkerDiedError: If the worker is gone.
        """
        try:
            frame = self._channel.receive(timeout, self.is_alive)
        except (EOFError, BrokenPipeError):
            raise self.death(during) from None
        if frame is not None:
            self.outstanding -= 1
        return frame

    def receive_done(self) -> bool:
        """Waits for the next answer; True if it is `done`. Anything else is left for `receive`."""
        if not self._channel.receive_just(frames.DONE, self.is_alive):
            return False
        self.outstanding -= 1
        return True

    def has_input(self) -> bool:
        """Says whether `receive` returns at once."""
        return self._channel.has_input()

    def death(self, during: str) -> WorkerDiedError:
        """Makes the error that says how the worker ended; ends it if it has not."""
        exit_code = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            exit_code = self.popen.wait(_TERMINATE_SECONDS)
        self.kill()
        return WorkerDiedError(self.index, self.env_indices, exit_code, during)

    def join(self, deadline: float) -> list[Reply]:
        """Waits until the process has ended, reading on so that it can.

        Returns:
            The replies that came meanwhile, if it ended in time.
        """
        replies: list[Reply] = []
        while self._open and (left := deadline - time.monotonic()) > 0:
            try:
                frame = self._channel.receive(min(left, 0.05), self.is_alive)
            except (EOFError, BrokenPipeError):
                break
            if frame is not None and frame.code == frames.MESSAGE:
                replies.append(pickling.load(frame.body))
            elif frame is None and not self.is_alive():
                break
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(max(0.0, deadline - time.monotonic()))
        return replies

    def kill(self) -> None:
        """Ends the process and what it started: asked first, then forced. Returns when it has."""
        if self._killed:  # its number may be somebody else's by now
            return
        self._killed = True
        if self.is_alive():
            self._signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.popen.wait(_TERMINATE_SECONDS)
        self._signal(signal.SIGKILL)
        self.popen.wait()

    def close(self) -> None:
        """Closes the owner's ends of the pipes; a worker that still runs is killed by that."""
        if self._open:
            self._open = False
            self.hang_up()
            for fd in (self._channel.read_fd, self._life_fd):
                os.close(fd)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.popen.pid, number)


def _pipe(
    childs: contextlib.ExitStack, on_error: contextlib.ExitStack, *, reverse: bool = False
) -> tuple[int, int]:
    """Returns (the worker's end, the owner's end) of a pipe; the worker is the reader."""
    read_fd, write_fd = os.pipe()
    child, own = (write_fd, read_fd) if reverse else (read_fd, write_fd)
    childs.callback(os.close, child)
    on_error.callback(os.close, own)
    return child, own


def _pickle_start(start: Start) -> bytes:
    try:
        return pickling.dump_by_value(start)
    except Exception as error:
        for index, env_fn in enumerate(start.env_fns, start.first):
            try:
                pickling.dump_by_value(env_fn)
            except Exception as cause:
                raise TypeError(
                    f"`env_fns[{index}]` cannot be pickled, as it must be to reach a worker: "
                    f"{cause}. Let it make what it needs instead of holding it."
                ) from cause
        raise error


def decode(frame: frames.Frame) -> Any:
    """Returns the Reply in a frame; None for one that says only `done`."""
    if frame.code == frames.MESSAGE:
        return pickling.load(frame.body)
    if frame.code == frames.READY:
        return Reply(env_index=frame.number)
    return None
