"""Errors of the command line: one line each, with the exit code that fits.

Exit codes: 0 done; 1 it failed; 2 the command line was wrong; 130 ended by Ctrl-C.
"""

import errno
import os
import re

import click

FAILED = 1
WRONG_USAGE = 2
INTERRUPTED = 130

# Errors of these kinds were raised with a message for the user. Any other one is unexpected here,
# and shown with its type.
_LONGEST = 300  # characters of the message of an unexpected error
_EXPECTED = (ValueError, OSError, RuntimeError, ImportError)


def colour() -> bool | None:
    """Return False where the user wants no colours (https://no-color.org), else None."""
    return False if os.environ.get("NO_COLOR") else None


class CommandFailed(click.ClickException):
    """What was asked for could not be done."""

    exit_code = FAILED

    def show(self, file: object = None) -> None:  # noqa: ARG002 - click's signature
        """Print the message, in one line, on the error stream."""
        label = click.style("Error:", fg="red", bold=True)
        click.echo(f"{label} {self.format_message()}", err=True, color=colour())


class BadInput(CommandFailed):
    """What was asked for does not exist or makes no sense: the command line must be changed."""

    exit_code = WRONG_USAGE


def describe(error: Exception) -> str:
    """Return one line that says what went wrong.

    Notes that were added to the error, such as the environment that raised it, are part of it.
    """
    message = " ".join(str(error).split())
    notes = " ".join(" ".join(note.split()) for note in getattr(error, "__notes__", ()))
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, _EXPECTED) and message and not notes:
        return message
    if (no_room := _no_room(message)) is not None:
        return no_room
    hint = "--debug shows where"
    if len(message) > _LONGEST:
        message = f"{message[:_LONGEST]} ..."
    return f"{type(error).__name__}: {message} ({f'{notes} {hint}' if notes else hint})"


def _no_room(message: str) -> str | None:
    """Return what TensorFlow's errors of a full disk come to; it has none with an errno."""
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        reason = os.strerror(number)
        if reason in message:
            path = re.search(rf"(\S+); {re.escape(reason)}", message)
            return f"{path[1]}: {reason}" if path else reason
    return None
