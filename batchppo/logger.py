"""Figures of a run, under Stable-Baselines3's keys, to terminal, CSV, JSON and TensorBoard."""

from __future__ import annotations

import csv
import json
import math
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, TextIO

import numpy as np

from batchppo.errors import did_you_mean
from batchppo.summaries import Summary

Figures = Mapping[str, Any]


class LogOutput(Protocol):
    """Where figures go."""

    def write(self, figures: Figures, step: int) -> None:
        """Writes one set of figures, by key, that belongs to an environment step."""

    def close(self) -> None:
        """Writes what is left and lets go of the file."""


class Logger:
    """Collects figures by key until `dump` writes them.

    Args:
        folder: where the outputs' files are; None where they have none.
        outputs: where `dump` writes to.

    Attributes:
        name_to_value: the figures recorded since the last `dump`.
    """

    def __init__(self, folder: Path | None, outputs: Iterable[LogOutput]) -> None:
        self.folder = folder
        self.outputs = list(outputs)
        self.name_to_value: dict[str, Any] = {}
        self._counts: dict[str, int] = {}
        self._excluded: dict[str, frozenset[str]] = {}

    def record(self, key: str, value: Any, exclude: str | Iterable[str] | None = None) -> None:
        """Keeps `value` under `key`; a later value replaces it.

        Args:
            key: such as "train/loss".
            value: a number, a text, or an array, which TensorBoard gets as a histogram and other
                outputs leave out, as they do an `Image`, `Figure`, `Video` or `HParam`.
            exclude: formats that do not get it, of those of `configure_logger`.
        """
        self.name_to_value[key] = value
        self._excluded[key] = _formats(exclude)

    def record_mean(
        self, key: str, value: float, exclude: str | Iterable[str] | None = None
    ) -> None:
        """Keeps the mean of all values recorded under `key` since the last `dump`."""
        count = self._counts.get(key, 0)
        old = self.name_to_value.get(key, 0.0) if count else 0.0
        self.name_to_value[key] = old + (value - old) / (count + 1)
        self._counts[key] = count + 1
        self._excluded[key] = _formats(exclude)

    def dump(self, step: int = 0) -> None:
        """Writes the figures recorded so far to every output and forgets them."""
        for output in self.outputs:
            name = getattr(output, "format", "")
            output.write(
                {k: v for k, v in self.name_to_value.items() if name not in self._excluded[k]}, step
            )
        self.name_to_value = {}
        self._counts = {}
        self._excluded = {}

    def get_dir(self) -> str | None:
        """Returns the folder of the outputs' files, None where there is none."""
        return None if self.folder is None else str(self.folder)

    def close(self) -> None:
        """Closes every output."""
        for output in self.outputs:
            output.close()


def configure_logger(
    folder: str | os.PathLike[str] | None = None, format_strings: Iterable[str] = ("stdout",)
) -> Logger:
    """Returns a logger.

    Args:
        folder: where files go; made if missing; None if no format needs a file.
        format_strings: any of "stdout", "log" (log.txt), "csv" (progress.csv), "json"
            (progress.json), "tensorboard" (event files).

    Raises:
        ValueError: an unknown format, or a format that needs a folder where there is none.
        OSError: the folder cannot be written.
    """
    target = None if folder is None else Path(folder)
    outputs = []
    for name in format_strings:
        if name not in _FORMATS:
            known = ", ".join(_FORMATS)
            raise ValueError(
                f"unknown log format '{name}'.{did_you_mean(name, _FORMATS)} Known are: {known}"
            )
        if name == "stdout":
            outputs.append(TableOutput(sys.stdout))
            continue
        if target is None:
            raise ValueError(f"log format '{name}' writes a file: give folder=")
        target.mkdir(parents=True, exist_ok=True)
        outputs.append(_FORMATS[name](target))
    return Logger(target, outputs)


class TableOutput:
    """A table for people to read.

    Args:
        file: where to write it.
        owned: whether `close` closes the file.
    """

    def __init__(self, file: TextIO, owned: bool = False) -> None:
        self._file = file
        self._owned = owned
        self.format = "log" if owned else "stdout"

    def write(self, figures: Figures, step: int) -> None:
        """Writes the figures in groups, by what stands before the slash of their key."""
        del step
        figures = _without_arrays(figures)
        lines = []
        group = ""
        for key in sorted(figures):
            head, _, name = key.rpartition("/")
            if head != group:
                lines.append(f"{head}/")
                group = head
            lines.append(f"   {name:<22} {_readable(figures[key]):>12}")
        width = max((len(line) for line in lines), default=0)
        rule = "-" * (width + 4)
        body = [f"| {line:<{width}} |" for line in lines]
        self._file.write("\n".join([rule, *body, rule, ""]))
        self._file.flush()

    def close(self) -> None:
        """Closes the file if it is this output's own."""
        if self._owned:
            self._file.close()


class CsvOutput:
    """`progress.csv`: one row a dump, one column a key; new keys become new columns.

    Args:
        path: the file; rows of an earlier run in it are kept.
    """

    format = "csv"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._columns: list[str] = []
        if path.exists() and path.stat().st_size:
            with path.open(newline="") as file:
                self._columns = next(csv.reader(file), [])
        self._file = path.open("a", newline="")

    def write(self, figures: Figures, step: int) -> None:
        """Appends a row."""
        del step
        figures = _without_arrays(figures)
        new = sorted(set(figures) - set(self._columns))
        if new:
            self._add_columns(new)
        values = {key: _plain(figures.get(key, "")) for key in self._columns}
        csv.DictWriter(self._file, self._columns, restval="").writerow(values)
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _add_columns(self, new: list[str]) -> None:
        """Writes the file anew with more columns, whole or not at all."""
        self._file.close()
        with self._path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        self._columns = [*self._columns, *new]
        temporary = self._path.with_name(f".{self._path.name}-{os.getpid()}")
        with temporary.open("w", newline="") as file:
            writer = csv.DictWriter(file, self._columns, restval="")
            writer.writeheader()
            writer.writerows(rows)
        temporary.replace(self._path)
        self._file = self._path.open("a", newline="")


class JsonOutput:
    """`progress.json`: one JSON object a line.

    Args:
        path: the file; lines of an earlier run in it are kept.
    """

    format = "json"

    def __init__(self, path: Path) -> None:
        self._file = path.open("a")

    def write(self, figures: Figures, step: int) -> None:
        """Appends a line; what is not finite becomes null."""
        del step
        values = {key: _plain(value) for key, value in _without_arrays(figures).items()}
        finite = {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in values.items()
        }
        self._file.write(json.dumps(finite) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


class TensorBoardOutput:
    """Event files for TensorBoard: numbers as scalars, arrays as histograms, text as text.

    Args:
        folder: where the event files go.
    """

    format = "tensorboard"

    def __init__(self, folder: Path) -> None:
        import tensorflow as tf

        self._summary = tf.summary
        self._writer = tf.summary.create_file_writer(str(folder))

    def write(self, figures: Figures, step: int) -> None:
        """Writes one event per figure at the environment step."""
        with self._writer.as_default(step):
            for key, value in figures.items():
                if isinstance(value, Summary):
                    value.write(key)
                elif isinstance(value, str):
                    self._summary.text(key, value)
                elif _is_array(value):
                    self._summary.histogram(key, value)
                else:
                    self._summary.scalar(key, float(value))
        self._writer.flush()

    def close(self) -> None:
        """Closes the event file."""
        self._writer.close()


_FORMATS: dict[str, Any] = {
    "stdout": TableOutput,
    "log": lambda folder: TableOutput((folder / "log.txt").open("a"), owned=True),
    "csv": lambda folder: CsvOutput(folder / "progress.csv"),
    "json": lambda folder: JsonOutput(folder / "progress.json"),
    "tensorboard": TensorBoardOutput,
}


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0


def _without_arrays(figures: Figures) -> Figures:
    return {
        key: value
        for key, value in figures.items()
        if not _is_array(value) and not isinstance(value, Summary)
    }


def _formats(exclude: str | Iterable[str] | None) -> frozenset[str]:
    names = frozenset([exclude] if isinstance(exclude, str) else exclude or ())
    for name in names - _FORMATS.keys():
        raise ValueError(
            f"unknown log format '{name}' in exclude.{did_you_mean(name, _FORMATS)} Known are: "
            f"{', '.join(_FORMATS)}"
        )
    return names


def _plain(value: Any) -> Any:
    """Returns NumPy's scalars, and arrays of one number without axes, as Python's."""
    return value.item() if isinstance(value, np.generic | np.ndarray) else value


def _readable(value: Any) -> str:
    value = _plain(value)
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
