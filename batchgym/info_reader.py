"""The owner's side of infos: batches them exactly as Gymnasium does."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import VectorEnv

from batchgym.info_schema import InfoEntry, SchemaLearner
from batchgym.messages import Reply

Info = dict[Any, Any]
Rows = slice | npt.NDArray[np.intp]

_ALL = slice(None)


class InfoReader:
    """Batches infos from shared memory and from replies."""

    def __init__(self, num_envs: int) -> None:
        self._num_envs = num_envs
        self._columns: list[tuple[InfoEntry, list[npt.NDArray[Any]]]] = []
        self.learner = SchemaLearner(num_envs)

    def install(self, entries: tuple[InfoEntry, ...], arrays: list[npt.NDArray[Any]]) -> None:
        """Takes a new schema; `arrays` are those of `entry.requests` in order."""
        remaining = iter(arrays)
        self._columns = [
            (entry, [next(remaining) for _ in entry.requests(self._num_envs)]) for entry in entries
        ]

    def read(self, replies: list[Reply], env_ids: npt.NDArray[np.intp] | None = None) -> Info:
        """Returns the batched info of a step.

        Args:
            replies: What came as messages.
            env_ids: Environments that the batch is of; None for all.
        """
        rows: Rows = _ALL if env_ids is None else env_ids
        infos = {index: info for reply in replies for index, info in reply.infos.items()}
        raw = {index: info for reply in replies for index, info in reply.raw_infos.items()}
        for info in (*infos.values(), *raw.values()):
            self.learner.observe(info)
        if not raw and not infos:
            return self.read_shared(rows)
        order = list(range(self._num_envs)) if env_ids is None else env_ids.tolist()
        merger = _merger(len(order))
        if not raw:
            known = self.read_shared(rows)
            for position, index in enumerate(order):
                if index in infos:
                    known = merger._add_info(known, infos[index], position)
            return known
        batch: Info = {}
        for position, index in enumerate(order):
            info = raw.get(index) or _merge(self._info_of(index), infos.get(index, {}))
            batch = merger._add_info(batch, info, position)
        return batch

    def read_shared(self, rows: Rows = _ALL) -> Info:
        """Returns the batched info of a step of which nothing came as messages."""
        batch: Info = {}
        for entry, arrays in self._columns:
            present = arrays[0][rows]
            if not present.any():
                continue
            target = batch
            for key in entry.path[:-1]:
                target = target[key]
            key = entry.path[-1]
            target[key] = {} if entry.kind is dict else _batch(entry, arrays[1][rows], present)
            target[f"_{key}"] = present.copy()
        return batch

    def _info_of(self, index: int) -> Info:
        """Returns one environment's info from shared memory, as the environment returned it."""
        info: Info = {}
        for entry, arrays in self._columns:
            if not arrays[0][index]:
                continue
            target = info
            for key in entry.path[:-1]:
                target = target[key]
            if entry.kind is dict:
                target[entry.path[-1]] = {}
            elif entry.kind is np.ndarray:
                target[entry.path[-1]] = arrays[1][index].copy()
            else:
                target[entry.path[-1]] = entry.kind(arrays[1][index])
        return info


def _batch(
    entry: InfoEntry, values: npt.NDArray[Any], present: npt.NDArray[np.bool_]
) -> npt.NDArray[Any]:
    if entry.path[-1] == "final_obs":  # Gymnasium keeps the rows apart
        rows = np.full(len(present), None, dtype=object)
        for position in np.flatnonzero(present):
            value = values[position]
            rows[position] = np.array(value) if entry.kind is np.ndarray else entry.kind(value)
        return rows
    if present.all():
        return values.copy()
    batch = np.zeros_like(values)
    batch[present] = values[present]
    return batch


def _merge(info: Info, rest: Info) -> Info:
    for key, value in rest.items():
        nested = isinstance(value, dict) and isinstance(info.get(key), dict)
        info[key] = _merge(info[key], value) if nested else value
    return info


def _merger(num_envs: int) -> VectorEnv[Any, Any, Any]:
    """Returns something whose `_add_info` batches for this number of environments."""
    merger: VectorEnv[Any, Any, Any] = VectorEnv()
    merger.num_envs = num_envs
    return merger
