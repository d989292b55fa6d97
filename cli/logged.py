"""What a run has logged: the columns of its `progress.csv`."""

import csv
import io
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .errors import BadInput
from .suggestions import did_you_mean

STEPS = "time/total_timesteps"

Array = NDArray[np.float64]


def read_metric(path: Path, metric: str) -> tuple[Array, Array]:
    """Return the steps and the values of a column of `progress.csv`, shape [n] each.

    The file may be that of a run that is going on: a last line without an end is left out. So are
    rows without a value of the column, which has one now and then only.

    Raises:
        BadInput: There is no such file or column, or a line is damaged.
    """
    if not path.is_file():
        raise BadInput(f"{path} does not exist: this run has logged nothing yet")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is damaged: it is no text ({error.reason})") from error
    whole = text[: text.rfind("\n") + 1]
    reader = csv.DictReader(io.StringIO(whole, newline=""))
    columns = reader.fieldnames or []
    for column in (STEPS, metric):
        if column not in columns:
            hint = did_you_mean(column, columns) or f" There are: {', '.join(columns)}."
            raise BadInput(f"{path} has no column {column!r}.{hint}")
    steps: list[float] = []
    values: list[float] = []
    for row in reader:
        if row[STEPS] == "" or row[metric] == "":
            continue
        where = f"{path}, line {reader.line_num}"
        step, value = (_number(row[column], where, column) for column in (STEPS, metric))
        if steps and step < steps[-1]:
            raise BadInput(f"{where}: {step:,.0f} steps come after {steps[-1]:,.0f}")
        if math.isfinite(value):
            steps.append(step)
            values.append(value)
    if not steps:
        raise BadInput(f"{path} has no value of {metric!r} yet")
    return np.array(steps), np.array(values)


def _number(text: str | None, where: str, column: str) -> float:
    try:
        if text is None:
            raise ValueError
        number = float(text)
    except ValueError as error:
        came = "nothing" if text is None else repr(text)
        raise BadInput(f"{where}: {column} must be a number, got {came}") from error
    if column == STEPS and not math.isfinite(number):
        raise BadInput(f"{where}: {column} must be a number of steps, got {text!r}")
    return number
