"""Whether waiting should spin, and spinning."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

SPIN_SECONDS = 200e-6
_LOOK_SECONDS = 0.05
_LOADAVG = Path("/proc/loadavg")

_yield_cpu: Callable[[], object] = getattr(os, "sched_yield", lambda: time.sleep(0))


def runnable_tasks() -> int:
    """Returns how many threads of the machine run or want to; 0 where that is not known."""
    try:
        return int(_LOADAVG.read_text().split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):
        return 0


class Spin:
    """Spins for a bounded time, where that is of use.

    Looking again and again, and giving the core away in between, reacts sooner than being woken.
    It is of no use, and not done:
    * after a wait that took longer than the bound, as the next one probably will too;
    * while more wants to run than the machine has cores and this vector environment has processes:
      who gives the core away then is last in line, while who is woken comes first.

    Args:
        processes: Workers and owner; 0 never spins.
    """

    def __init__(self, processes: int) -> None:
        self._seconds = SPIN_SECONDS if processes else 0.0
        self._room = max(processes, os.cpu_count() or 1)
        self._last_wait = 0.0
        self._crowd = 0.0
        self._next_look = 0.0

    def wait(self, look: Callable[[int], object], block: Callable[[], bool]) -> bool:
        """Waits until `look(0)` finds something, or `block` returns.

        Returns:
            Whether something was found.
        """
        start = time.monotonic()
        if self._last_wait < self._seconds and not self._is_crowded(start):
            end = start + self._seconds
            while (now := time.monotonic()) < end:
                _yield_cpu()
                if look(0):
                    self._last_wait = now - start
                    return True
        found = block()
        self._last_wait = time.monotonic() - start
        return found

    def _is_crowded(self, now: float) -> bool:
        if now >= self._next_look:
            self._next_look = now + _LOOK_SECONDS
            self._crowd += 0.25 * ((runnable_tasks() > self._room) - self._crowd)
        return self._crowd > 0.5
