"""Which info entries live in shared memory, learned from the infos that came as messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from batchgym.memory import ArrayRequest

Path = tuple[str, ...]

_MAX_ENTRIES = 256
_MAX_REVISIONS = 20
_MAX_BYTES = 1 << 28


@dataclass(frozen=True)
class InfoEntry:
    """One key of an info, at any depth.

    Attributes:
        path: Keys from the top to this one.
        kind: `dict` for a nested info, which has a mask only; else the type of the value.
        shape: Shape of one environment's value.
        dtype: As Gymnasium batches it; None for a nested info.
    """

    path: Path
    kind: type[Any]
    shape: tuple[int, ...] = ()
    dtype: np.dtype[Any] | None = None

    def requests(self, num_envs: int) -> list[ArrayRequest]:
        """Returns the arrays of the entry: its mask, then its values, if it has any."""
        mask = ArrayRequest((num_envs,), np.dtype(np.bool_))
        if self.dtype is None:
            return [mask]
        return [mask, ArrayRequest((num_envs, *self.shape), self.dtype)]


def describe_entry(path: Path, value: Any) -> InfoEntry | None:
    """Returns the entry for a value, None if it can't be shared.

    Values are told apart exactly as in `gymnasium.vector.VectorEnv._add_info`, where a scalar's
    type becomes the dtype, and an array's shape and dtype that of the batch.
    """
    kind = type(value)
    if kind is dict:
        # Gymnasium does not look into a final observation, even if it is a dictionary.
        return InfoEntry(path, dict) if path[-1] != "final_obs" else None
    if kind in (int, float, bool) or issubclass(kind, np.number):
        dtype = np.dtype(kind)
    elif kind is np.ndarray:
        dtype = value.dtype
    else:
        return None
    if dtype.kind not in "biufc" or not dtype.isnative:
        return None
    return InfoEntry(path, kind, np.shape(value), dtype)


class SchemaLearner:
    """Collects entries, and gives up those that turn out to vary."""

    def __init__(self, num_envs: int) -> None:
        self._num_envs = num_envs
        self._entries: dict[Path, InfoEntry] = {}
        self._unsteady: set[Path] = set()
        self._changed = False
        self._revisions = 0

    def observe(self, info: dict[Any, Any], prefix: Path = ()) -> None:
        """Looks at an info, or part of one, of one environment."""
        for key, value in info.items():
            path = (*prefix, key)
            if not isinstance(key, str) or path in self._unsteady:
                continue
            entry = describe_entry(path, value)
            known = self._entries.get(path)
            if known is not None and known != entry:
                self._give_up(path)
            elif entry is not None:
                if known is None:
                    self._entries[path] = entry
                    self._changed = True
                if entry.kind is dict:
                    self.observe(value, path)

    def revise(self) -> tuple[InfoEntry, ...] | None:
        """Returns a new schema if there is a better one since the last call, else None."""
        if not self._changed or self._revisions >= _MAX_REVISIONS:
            return None
        self._changed = False
        if len(self._entries) > _MAX_ENTRIES:
            return None
        entries = tuple(self._entries.values())
        size = sum(r.nbytes for entry in entries for r in entry.requests(self._num_envs))
        if size > _MAX_BYTES:
            return None
        self._revisions += 1
        return entries

    def _give_up(self, path: Path) -> None:
        """Leaves an entry, and those inside it, to messages."""
        self._unsteady.add(path)
        for known in [known for known in self._entries if known[: len(path)] == path]:
            del self._entries[known]
        self._changed = True
