"""The file that a search keeps its trials in: Optuna's journal, one JSON object a line."""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from .errors import BadInput
from .files import write_bytes


@contextlib.contextmanager
def open_journal(path: Path) -> Iterator[JournalStorage]:
    """Yield the trials in a file; several processes may add to them at the same time.

    A line that was cut off in writing, by a full disk or a `kill -9`, is removed first: what is
    written behind it could not be read.

    Raises:
        BadInput: A line is damaged.
        OSError: The file cannot be written; the error names it.
    """
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        with contextlib.suppress(BlockingIOError):  # else somebody is writing to it
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _mend(path)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        with _named(path):
            yield JournalStorage(JournalFileBackend(str(path)))
    finally:
        os.close(descriptor)


def _mend(path: Path) -> None:
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            json.loads(line)
        except ValueError as error:
            raise BadInput(
                f"{path}, line {number} is damaged ({error}): mend it, or begin another study "
                "with --logdir"
            ) from error
    if whole != content:
        write_bytes(path, whole)


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Let errors of writing name the file, also those that Optuna has hidden behind its own."""
    try:
        yield
    except (OSError, AssertionError) as error:
        cause = error if isinstance(error, OSError) else error.__context__
        if isinstance(cause, OSError) and cause.errno is not None and cause.filename is None:
            raise OSError(cause.errno, cause.strerror, str(path)) from error
        raise
