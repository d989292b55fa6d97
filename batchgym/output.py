"""What workers print: passed on to the owner's streams."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class OutputRelay:
    """Passes on what workers print."""

    @contextlib.contextmanager
    def open_worker(self) -> Iterator[tuple[int, int]]:
        """Yields the descriptors for a worker's output and errors."""
        yield 1, 2

    def close(self) -> None:
        """Stops."""
