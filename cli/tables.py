"""Tables that lose nothing on a narrow screen."""

from collections.abc import Mapping, Sequence

from rich.console import Console, JustifyMethod
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

Row = Mapping[str, str | Text]

_FOLDED_WIDTH = 20  # columns that are enough for a text that goes on in the next line
_UNLIMITED = 10_000


def print_rows(
    console: Console, rows: Sequence[Row], texts: Sequence[str] = (), folded: str | None = None
) -> None:
    """Print a line for each row, below its headings; or a block for each, where that is too wide.

    Args:
        console: Where to print.
        rows: At least one: cells by heading, which are the same in all rows.
        texts: Headings of columns that begin at the left; numbers end at the right.
        folded: Heading of a column whose texts may go on in the next line.
    """
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in rows[0]:
        justify: JustifyMethod = "left" if heading in texts else "right"
        table.add_column(heading, justify=justify, no_wrap=heading != folded, overflow="fold")
    for row in rows:
        table.add_row(*row.values())
    if _least_width(console, table, rows, folded) <= console.width:
        console.print(table)
        return
    for number, row in enumerate(rows):
        if number:
            console.print()
        print_pairs(console, row)


def _least_width(console: Console, table: Table, rows: Sequence[Row], folded: str | None) -> int:
    unlimited = console.options.update(max_width=_UNLIMITED)
    width = Measurement.get(console, unlimited, table).maximum
    if folded is None:
        return width
    longest = max(len(row[folded]) for row in rows)
    return width - max(0, longest - _FOLDED_WIDTH)


def print_pairs(console: Console, pairs: Row) -> None:
    """Print names and what belongs to them, a line each; long texts go on in the next line."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", overflow="fold")
    table.add_column(overflow="fold")
    for name, value in pairs.items():
        table.add_row(name, value)
    console.print(table)
