"""What passes through the pipes: frames of one byte, a number, or a pickled message.

* `s`: step all environments of the worker; the actions are in shared memory.
* `k`: done; everything is in shared memory.
* `r` and a uint32: this environment is done; everything is in shared memory.
* `m`, a uint64 and as many bytes: a pickled message.
"""

from __future__ import annotations

import os
import select
import struct
import time
from collections.abc import Callable
from typing import NamedTuple

from batchgym.spin import Spin

_CHUNK = 1 << 16  # what a pipe holds
_SHORT = 256
_ALIVE_CHECK_SECONDS = 1.0
_READY = struct.Struct("<I")
_LENGTH = struct.Struct("<Q")


class Frame(NamedTuple):
    """One frame: its code, the number of a `READY`, the body of a `MESSAGE`."""

    code: int
    number: int = 0
    body: bytes = b""


STEP = b"s"
DONE = b"k"
READY = b"r"[0]
MESSAGE = b"m"[0]


def ready(number: int) -> bytes:
    """Encodes that environment `number` is done."""
    return b"r" + _READY.pack(number)


def message(body: bytes) -> bytes:
    """Encodes a message."""
    return b"m" + _LENGTH.pack(len(body)) + body


def take_frame(buffer: bytearray) -> Frame | None:
    """Takes the first frame out of a buffer that is not empty; None if it is not all there."""
    code = buffer[0]
    if code == MESSAGE:
        if len(buffer) < 1 + _LENGTH.size:
            return None
        end = 1 + _LENGTH.size + _LENGTH.unpack_from(buffer, 1)[0]
        if len(buffer) < end:
            return None
        frame = Frame(code, 0, bytes(buffer[1 + _LENGTH.size : end]))
    elif code == READY:
        end = 1 + _READY.size
        if len(buffer) < end:
            return None
        frame = Frame(code, _READY.unpack_from(buffer, 1)[0])
    else:
        end = 1
        frame = Frame(code)
    del buffer[:end]
    return frame


class Channel:
    """Two pipes to the other side.

    Args:
        read_fd: Pipe to read frames from.
        write_fd: Pipe to write frames to. With `drain_while_writing` it must be non-blocking.
        spin: What decides whether waiting spins before it blocks.
        drain_while_writing: Read on while the other side does not take what is written; otherwise
            two sides that both write much would wait for each other.
    """

    def __init__(
        self, read_fd: int, write_fd: int, spin: Spin, *, drain_while_writing: bool = False
    ) -> None:
        self.read_fd = read_fd
        self.write_fd = write_fd
        self._spin = spin
        self._drain_while_writing = drain_while_writing
        self._poll = select.poll()
        self._poll.register(read_fd, select.POLLIN)
        self._buffer = bytearray()

    def send(self, data: bytes) -> None:
        """Writes a frame.

        Raises:
            BrokenPipeError: If the other side is gone.
        """
        written = self._write(data)
        if written < len(data):
            self._send_rest(memoryview(data)[written:])

    def try_send(self, data: bytes) -> bool:
        """Writes a short frame to a non-blocking pipe; False if the pipe has no room for it."""
        return self._write(data) == len(data)

    def _send_rest(self, view: memoryview) -> None:
        poll = select.poll()
        poll.register(self.write_fd, select.POLLOUT)
        if self._drain_while_writing:
            poll.register(self.read_fd, select.POLLIN)
        while view:
            for fd, _ in poll.poll():
                if fd == self.read_fd:
                    self._read()
                else:
                    view = view[self._write(view) :]

    def _write(self, data: bytes | memoryview) -> int:
        """Returns how much was written; 0 if a non-blocking pipe has no room."""
        try:
            return os.write(self.write_fd, data)
        except BlockingIOError:
            return 0

    def receive_just(self, code: bytes, is_alive: Callable[[], bool] | None = None) -> bool:
        """Waits for the next frame; True if it is this one-byte frame and nothing follows.

        Anything else, the end of the pipe too, is left for `receive`.
        """
        if self._buffer:
            return False
        poll = self._poll.poll
        try:
            if not poll(0):
                self._spin.wait(poll, lambda: self._block(None, is_alive))
        except EOFError:
            return False
        data = os.read(self.read_fd, _SHORT)
        if data == code:
            return True
        self._buffer += data
        return False

    def receive(
        self, timeout: float | None = None, is_alive: Callable[[], bool] | None = None
    ) -> Frame | None:
        """Returns the next frame, None if there is none within `timeout` seconds.

        Args:
            timeout: Seconds; None waits for ever.
            is_alive: Asked once a second whether the other side lives, for the case that somebody
                else holds its end of the pipe open.

        Raises:
            EOFError: If the other side is gone.
        """
        if self._buffer and (frame := take_frame(self._buffer)) is not None:
            return frame
        deadline = None if timeout is None else time.monotonic() + timeout
        while self._wait(deadline, is_alive):
            data = os.read(self.read_fd, _CHUNK)
            if not data:
                raise EOFError
            self._buffer += data
            if (frame := take_frame(self._buffer)) is not None:
                return frame
        return None

    def has_input(self) -> bool:
        """Says whether something can be read without waiting."""
        return bool(self._buffer) or bool(self._poll.poll(0))

    def _read(self) -> None:
        data = os.read(self.read_fd, _CHUNK)
        if not data:
            raise BrokenPipeError
        self._buffer += data

    def _wait(self, deadline: float | None, is_alive: Callable[[], bool] | None) -> bool:
        if self._poll.poll(0):
            return True
        return self._spin.wait(self._poll.poll, lambda: self._block(deadline, is_alive))

    def _block(self, deadline: float | None, is_alive: Callable[[], bool] | None) -> bool:
        look = self._poll.poll
        while True:
            seconds = _ALIVE_CHECK_SECONDS if is_alive is not None else None
            if deadline is not None:
                left = max(0.0, deadline - time.monotonic())
                seconds = left if seconds is None else min(left, seconds)
            if look(None if seconds is None else int(seconds * 1000 + 0.999)):
                return True
            if deadline is not None and time.monotonic() >= deadline:
                return False
            if is_alive is not None and not is_alive() and not look(0):
                raise EOFError
