"""Rows of results in a CSV file, written as runs end, so that a benchmark can go on later."""

import csv


def read(path):
    """Returns the rows of earlier runs."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append(path, row):
    """Appends a row, behind a header if it is the first."""
    new = not path.exists()
    path.parent.mkdir(exist_ok=True)
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)
