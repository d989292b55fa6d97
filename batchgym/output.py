"""What workers print, passed on to the owner's streams without repetition."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

_CHUNK = 1 << 16
_MAX_LINES = 1000
_JOIN_SECONDS = 1.0


class LineFilter:
    """Decides which lines are shown.

    While environments are made, each line is shown once, whoever prints it and how often. After
    that, the n-th time that a worker prints a line is shown if no worker has got that far before:
    what all workers print alike is shown once, and what one worker prints five times, five times.
    """

    def __init__(self) -> None:
        self._starting = True
        self._shown: OrderedDict[str, int] = OrderedDict()
        self._printed: dict[str, dict[int, int]] = {}

    def end_start(self) -> None:
        """Says that all environments are made."""
        self._starting = False
        self._shown.clear()

    def passes(self, worker: int, line: str) -> bool:
        """Says whether to show a line that a worker has just printed."""
        shown = self._shown.setdefault(line, 0)
        self._shown.move_to_end(line)
        if len(self._shown) > _MAX_LINES:
            oldest, _ = self._shown.popitem(last=False)
            self._printed.pop(oldest, None)
        if self._starting:
            count = 1
        else:
            counts = self._printed.setdefault(line, {})
            count = counts[worker] = counts.get(worker, 0) + 1
        self._shown[line] = max(shown, count)
        return count > shown


@dataclass
class _Source:
    """One stream of one worker."""

    worker: int
    stream: str
    rest: bytes = b""


@dataclass
class OutputRelay:
    """Reads the workers' output in a thread of the owner, and writes it to its streams."""

    _filters: dict[str, LineFilter] = field(
        default_factory=lambda: {"stdout": LineFilter(), "stderr": LineFilter()}
    )
    _sources: dict[int, _Source] = field(default_factory=dict)
    _thread: threading.Thread | None = None
    _control: tuple[int, int] | None = None

    @contextlib.contextmanager
    def open_worker(self, worker: int) -> Iterator[tuple[int, int]]:
        """Yields the descriptors for a worker's output and errors."""
        writers: list[int] = []
        try:
            for stream in ("stdout", "stderr"):
                read_fd, write_fd = os.pipe()
                writers.append(write_fd)
                os.set_blocking(read_fd, False)
                self._sources[read_fd] = _Source(worker, stream)
            self._wake(b"n")
            yield writers[0], writers[1]
        finally:
            for fd in writers:
                os.close(fd)

    def started(self) -> None:
        """Says that the environments are made; see LineFilter."""
        self._wake(b"s")

    def close(self) -> None:
        """Passes on what is left, and stops."""
        if self._thread is not None and self._thread.is_alive():
            self._wake(b"q")
            self._thread.join(_JOIN_SECONDS)
        for fd in (*self._sources, *(self._control or ())):
            os.close(fd)
        self._sources.clear()
        self._control = None

    def _wake(self, word: bytes) -> None:
        if self._control is None:
            self._control = os.pipe()
            self._thread = threading.Thread(target=self._run, name="batchgym-output", daemon=True)
            self._thread.start()
        os.write(self._control[1], word)

    def _run(self) -> None:
        if self._control is None:
            return
        control = self._control[0]
        while True:
            poll = select.poll()
            for fd in (control, *list(self._sources)):
                poll.register(fd, select.POLLIN)
            ready = [fd for fd, _ in poll.poll()]
            # Before the words: what was printed before a word was said is read before it counts.
            for fd in ready:
                if fd != control and not self._pass_on(fd):
                    del self._sources[fd]
                    os.close(fd)
            if control not in ready:
                continue
            words = os.read(control, _CHUNK)
            if b"s" in words:
                for line_filter in self._filters.values():
                    line_filter.end_start()
            if b"q" in words:
                return

    def _pass_on(self, fd: int) -> bool:
        """Passes on what can be read; False if there will be no more."""
        source = self._sources[fd]
        while True:
            try:
                data = os.read(fd, _CHUNK)
            except BlockingIOError:
                return True
            *lines, source.rest = (source.rest + data).split(b"\n")
            if not data and source.rest:
                lines, source.rest = [source.rest], b""
            self._show(source, [line.decode(errors="replace") for line in lines])
            if not data:
                return False

    def _show(self, source: _Source, lines: list[str]) -> None:
        line_filter = self._filters[source.stream]
        text = "".join(f"{line}\n" for line in lines if line_filter.passes(source.worker, line))
        stream = getattr(sys, source.stream)
        if text and stream is not None:
            with contextlib.suppress(OSError, ValueError):  # the owner's stream is closed
                stream.write(text)
                stream.flush()
