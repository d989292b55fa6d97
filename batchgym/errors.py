"""Errors of batchgym. Those that Gymnasium has a name for are raised as Gymnasium's own."""

from __future__ import annotations

import signal

from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError


class WorkerDiedError(RuntimeError):
    """A worker process ended by itself, was killed, or closed its pipe.

    Attributes:
        worker: Index of the worker.
        env_indices: Environments that lived in it.
        exit_code: Exit code; negative is the signal that ended it; None if it still runs.
    """

    def __init__(self, worker: int, env_indices: range, exit_code: int | None, during: str) -> None:
        self.worker = worker
        self.env_indices = env_indices
        self.exit_code = exit_code
        self.during = during
        super().__init__(
            f"Worker {worker} ({describe_envs(env_indices)}) died during `{during}`: "
            f"{describe_exit(exit_code)}"
        )

    def __reduce__(self) -> tuple[type[WorkerDiedError], tuple[int, range, int | None, str]]:
        """Rebuilds from the four arguments, as the default would pass the message."""
        return type(self), (self.worker, self.env_indices, self.exit_code, self.during)


class WorkerStartError(RuntimeError):
    """The workers could not be started: descriptors or memory ran out, or time did."""


class EnvironmentFailedError(RuntimeError):
    """An environment raised something that cannot be raised again here, or must be reset first."""


class EnvironmentPendingError(AlreadyPendingCallError):
    """An environment was sent an action while its last one has not been received."""


class NothingPendingError(NoAsyncCallError):
    """More was to be received than has been sent."""


class RemoteTracebackError(Exception):
    """Cause of a re-raised exception: the traceback text of the worker."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


def describe_envs(env_indices: range) -> str:
    """Returns "environment 3" or "environments 0 to 3"."""
    if len(env_indices) == 1:
        return f"environment {env_indices[0]}"
    return f"environments {env_indices[0]} to {env_indices[-1]}"


def describe_exit(exit_code: int | None) -> str:
    """Says in words how a process ended, with a hint where the cause is often the same."""
    if exit_code is None:
        return "it closed its pipe but still runs; it has been killed"
    if exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    hints = {
        "SIGKILL": " (is the machine out of memory? see `dmesg`)",
        "SIGSEGV": " (a crash in native code of the environment)",
        "SIGABRT": " (native code of the environment gave up)",
        "SIGBUS": " (shared memory or a mapped file went away)",
    }
    return f"killed by {name}{hints.get(name, '')}"
