"""Ends a worker whose owner is gone, whatever the worker is doing.

The owner holds the other end of a pipe. When it goes, by whatever means, the kernel closes it:
* on Linux the kernel then sends SIGKILL (`F_SETSIG`), even to a worker that is stuck in C code and
  holds the interpreter lock;
* a thread that reads the pipe and looks at the parent's id does the same where that is missing, or
  where a fork of the owner keeps the pipe open.

PR_SET_PDEATHSIG is no substitute: it fires when the *thread* that started the worker ends.
"""

from __future__ import annotations

import fcntl
import os
import select
import threading

_PARENT_CHECK_MS = 1000
_SIGKILL = 9


def watch(life_fd: int, parent_pid: int) -> None:
    """Starts watching.

    Args:
        life_fd: Read end of a pipe on which nothing is ever written.
        parent_pid: Process that started this one.
    """
    _ask_kernel(life_fd)
    thread = threading.Thread(target=_watch, args=(life_fd, parent_pid), daemon=True)
    thread.start()


def _ask_kernel(life_fd: int) -> None:
    set_signal = getattr(fcntl, "F_SETSIG", None)
    asynchronous = getattr(os, "O_ASYNC", None)
    if set_signal is None or asynchronous is None:
        return
    fcntl.fcntl(life_fd, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(life_fd, set_signal, _SIGKILL)
    flags = fcntl.fcntl(life_fd, fcntl.F_GETFL)
    fcntl.fcntl(life_fd, fcntl.F_SETFL, flags | asynchronous)


def _watch(life_fd: int, parent_pid: int) -> None:
    poll = select.poll()
    poll.register(life_fd, select.POLLIN)
    while not poll.poll(_PARENT_CHECK_MS):
        if os.getppid() != parent_pid:
            break
    os.kill(os.getpid(), _SIGKILL)
