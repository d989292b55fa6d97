"""The worker's side of infos: writes what the schema knows, returns the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from batchgym.info_schema import InfoEntry, Path
from batchgym.messages import Reply

Info = dict[Any, Any]


class _ContradictionError(Exception):
    """A value is not of the kind that the schema says."""


class _Column:
    """The worker's rows of one entry."""

    def __init__(self, entry: InfoEntry, arrays: list[npt.NDArray[Any]]) -> None:
        self.entry = entry
        self.mask = arrays[0]
        self.values = arrays[1] if len(arrays) > 1 else None
        self._kinds = {entry.kind}
        self._plain = entry.kind is not np.ndarray

    def put_all(self, values: list[Any]) -> bool:
        """Writes one value per environment; False if one is of another kind."""
        if set(map(type, values)) != self._kinds or self.values is None:
            return False
        if not self._plain and any(not self._fits(value) for value in values):
            return False
        self.values[:] = values
        self.mask[:] = True
        return True

    def put(self, slot: int, value: Any) -> None:
        """Writes the value of one environment."""
        if type(value) is not self.entry.kind or not (self._plain or self._fits(value)):
            raise _ContradictionError
        if self.values is not None:
            try:
                self.values[slot] = value
            except OverflowError as error:
                raise _ContradictionError from error
        self.mask[slot] = True

    def _fits(self, value: npt.NDArray[Any]) -> bool:
        return value.shape == self.entry.shape and value.dtype == self.entry.dtype


class InfoWriter:
    """Writes the infos of a worker's environments.

    Args:
        num_slots: Environments of the worker.
        infos: `"all"`, `"none"`, or the keys that are kept. What the autoreset mode adds,
            `final_obs`, is always kept.
    """

    def __init__(self, num_slots: int, infos: str | tuple[str, ...]) -> None:
        self._num_slots = num_slots
        self._select = _selector(infos)
        self._columns: dict[Path, _Column] = {}
        self._plans: dict[tuple[Any, ...], list[tuple[Any, _Column]] | None] = {}
        self._written: list[_Column] = []

    def install(self, entries: tuple[InfoEntry, ...], arrays: list[npt.NDArray[Any]]) -> None:
        """Takes a new schema; `arrays` are the worker's rows of `entry.requests` in order."""
        remaining = iter(arrays)
        self._columns = {
            entry.path: _Column(entry, [next(remaining) for _ in entry.requests(self._num_slots)])
            for entry in entries
        }
        self._plans = {}
        self._written = []

    @property
    def has_written(self) -> bool:
        """Says whether something may be there that the next step has to take away."""
        return bool(self._written)

    def write(self, infos: list[tuple[int, Info]], reply: Reply, first: int) -> None:
        """Writes the infos of one step of all environments; those not listed have none.

        Args:
            infos: Slot and info of each environment that has one.
            reply: Where what does not fit the schema is left, by environment index.
            first: Environment index of slot 0.
        """
        if self._select is not None:
            select = self._select
            infos = [(slot, kept) for slot, info in infos if (kept := select(info))]
        if len(infos) == self._num_slots and self._write_alike([info for _, info in infos]):
            return
        for column in self._written:
            column.mask[:] = False
        self._written = list(self._columns.values()) if infos else []
        for slot, info in infos:
            self._write_one(slot, info, reply, first)

    def write_slot(self, slot: int, info: Info, reply: Reply, first: int) -> None:
        """Writes the info of one environment and leaves the others alone."""
        if self._select is not None:
            info = self._select(info)
        self.forget_slot(slot)
        self._written = list(self._columns.values())
        self._write_one(slot, info, reply, first)

    def forget_slot(self, slot: int) -> None:
        """Lets an environment have no info."""
        for column in self._columns.values():
            column.mask[slot] = False

    def _write_alike(self, infos: list[Info]) -> bool:
        """Writes infos that all have the same plain keys: the usual case, a column at a time."""
        plan = self._plan(tuple(infos[0]))
        if plan is None:
            return False
        size = len(plan)
        try:
            for key, column in plan:
                if not column.put_all([info[key] for info in infos]):
                    return False
        except (KeyError, OverflowError):
            return False
        if any(len(info) != size for info in infos):
            return False
        columns = [column for _, column in plan]
        for column in self._written:
            if column not in columns:
                column.mask[:] = False
        self._written = columns
        return True

    def _plan(self, keys: tuple[Any, ...]) -> list[tuple[Any, _Column]] | None:
        try:
            return self._plans[keys]
        except KeyError:
            columns = [self._columns.get((key,)) for key in keys]
            plan = [
                (key, column)
                for key, column in zip(keys, columns, strict=True)
                if column is not None and column.values is not None
            ]
            self._plans[keys] = plan if len(plan) == len(keys) else None
            return self._plans[keys]

    def _write_one(self, slot: int, info: Info, reply: Reply, first: int) -> None:
        try:
            rest = self._put(slot, info, ())
        except _ContradictionError:
            self.forget_slot(slot)
            reply.raw_infos[first + slot] = info
        else:
            if rest:
                reply.infos[first + slot] = rest

    def _put(self, slot: int, info: Info, prefix: Path) -> Info:
        rest: Info = {}
        for key, value in info.items():
            path = (*prefix, key)
            column = self._columns.get(path)
            if column is None:
                rest[key] = value
                continue
            column.put(slot, value)
            if column.values is None and (inner := self._put(slot, value, path)):
                rest[key] = inner
        return rest


def _selector(infos: str | tuple[str, ...]) -> Callable[[Info], Info] | None:
    if infos == "all":
        return None
    keys = frozenset() if infos == "none" else frozenset(infos)

    def select(info: Info) -> Info:
        kept = {key: value for key, value in info.items() if key in keys or key == "final_obs"}
        if keys and "final_obs" in info and "final_info" in info:
            kept["final_info"] = {k: v for k, v in info["final_info"].items() if k in keys}
        return kept

    return select
