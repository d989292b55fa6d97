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


def replace(path, rows, key, order):
    """Writes rows in place of earlier ones with the same `key`, and keeps the others.

    Args:
        path: The file.
        rows: What was measured now.
        key: The column that tells what a row is of.
        order: Values of that column, in the order in which rows are written; others come last.
    """
    measured = {row[key] for row in rows}
    places = {value: place for place, value in enumerate(order)}
    kept = [row for row in read(path) if row[key] not in measured]
    path.unlink(missing_ok=True)
    for row in sorted([*kept, *rows], key=lambda row: places.get(row[key], len(places))):
        append(path, row)
