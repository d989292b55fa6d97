"""What can go wrong, by name. Every message says what came, what was expected and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SpaceError(ValueError):
    """A space that the agent cannot handle, or data that does not fit a space."""


class NonFiniteError(ValueError):
    """NaN or infinity where a finite number was needed."""


class ModelFileError(ValueError):
    """A model file that cannot be read, or does not fit what it is loaded into."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns ` Did you mean 'x'?` for the closest known name, or an empty string."""
    nearest = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" Did you mean '{nearest[0]}'?" if nearest else ""
