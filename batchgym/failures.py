"""An environment's exception on its way from the worker to the owner."""

from __future__ import annotations

import contextlib
import pickle
import traceback
from typing import Any

from gymnasium import logger

from batchgym import pickling
from batchgym.errors import EnvironmentFailedError, RemoteTracebackError
from batchgym.messages import Failure


def capture(error: BaseException, env_index: int, doing: str) -> Failure:
    """Makes a Failure of an exception; never raises, whatever the exception is like."""
    try:
        text = "".join(traceback.format_exception(error))
        summary = f"{type(error).__name__}: {error}"
    except Exception as nested:  # noqa: BLE001 - its own __str__ is broken
        text = summary = f"{type(error).__name__} (which cannot be printed: {nested!r})"
    return Failure(env_index, doing, _pickle(error), summary, text)


def restore(failure: Failure) -> BaseException:
    """Returns the exception to raise: the original one where that is possible."""
    where = f"Environment {failure.env_index} raised this in `{failure.doing}`, in its worker."
    error: BaseException | None = None
    if failure.pickled is not None:
        try:
            error = pickling.load(failure.pickled)
        except Exception:  # noqa: BLE001 - unpickling runs the class's own code
            error = None
    if not isinstance(error, Exception):  # SystemExit must not end the owner
        error = EnvironmentFailedError(
            f"Environment {failure.env_index} raised {failure.summary} in `{failure.doing}`"
        )
    error.add_note(where)
    error.__cause__ = RemoteTracebackError(failure.traceback)
    return error


def _rebuild(kind: type[BaseException], args: tuple[Any, ...], state: Any) -> BaseException:
    """Rebuilds an exception whose constructor takes other arguments than `args`."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class _Rebuilt:
    """Pickles as an exception that the default way of pickling loses."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __reduce__(self) -> Any:
        error = self._error
        return _rebuild, (type(error), error.args, error.__dict__)


def _pickle(error: BaseException) -> bytes | None:
    """Pickles an exception so that it can be unpickled, None if that fails."""
    for candidate in (error, _Rebuilt(error)):
        try:
            data = pickling.dump_reply(candidate)
            if type(pickle.loads(data)) is type(error):
                return data
        except Exception:  # noqa: BLE001 - any code of the exception may run here
            continue
    return None


def report(failures: list[Failure]) -> BaseException:
    """Logs every failure as Gymnasium does, and returns the exception to raise: the last one."""
    for failure in failures:
        _log(f"Received the following error from Worker-{failure.env_index} - Shutting it down")
        _log(failure.traceback)
    _log("Raising the last exception back to the main process.")
    return restore(failures[-1])


def _log(text: str) -> None:
    # Gymnasium logs with warnings. Where those are errors, the environment's own is the better one.
    with contextlib.suppress(Warning):
        logger.error(text)
