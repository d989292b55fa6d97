"""Near misses: what somebody may have meant who wrote a name that does not exist."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return up to `count` of the `known` names that are most like `name`, best first.

    Case is ignored, and names that contain the whole of `name` count as near.
    """
    spellings: dict[str, list[str]] = {}
    for candidate in known:
        spellings.setdefault(candidate.casefold(), []).append(candidate)
    wanted = name.casefold()
    close = difflib.get_close_matches(wanted, spellings, n=count, cutoff=0.6)
    inside = (
        sorted(key for key in spellings if wanted in key and key not in close) if wanted else []
    )
    return [spelling for key in [*close, *inside] for spelling in spellings[key]][:count]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a sentence that names the nearest of the `known` names, or an empty string."""
    names = nearest(name, known)
    if not names:
        return ""
    return f" Did you mean {' or '.join(names)}?"
