"""Where output goes: results to standard output, what happens meanwhile to standard error."""

from rich.console import Console


def results() -> Console:
    """Return the console for what a command was asked for."""
    return Console(highlight=False, markup=False)


def messages() -> Console:
    """Return the console for progress and notes, which must not end up in a pipe."""
    return Console(stderr=True, highlight=False, markup=False)
