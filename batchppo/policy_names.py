"""The policies by name: what they read, and whether they remember."""

from __future__ import annotations

from typing import Any

from batchppo.errors import did_you_mean

_CELLS = {"": None, "Lstm": "lstm", "Gru": "gru"}
_PARTS = {
    f"{reading}{memory}Policy": (reading, cell)
    for memory, cell in _CELLS.items()
    for reading in ("Mlp", "Cnn", "MultiInput")
}

POLICIES = tuple(_PARTS)


def split_policy(policy: Any) -> tuple[str, str | None]:
    """Returns what a policy reads ("Mlp", "Cnn" or "MultiInput") and its cell, if it has one.

    Raises:
        ValueError: an unknown policy.
    """
    if policy not in POLICIES:
        raise ValueError(
            f"unknown policy {policy!r}.{did_you_mean(str(policy), POLICIES)} "
            f"Known are: {', '.join(POLICIES)}"
        )
    return _PARTS[policy]
