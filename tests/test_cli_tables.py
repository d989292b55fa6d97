"""Tables: a line for each row where there is room, a block for each where there is none."""

import io

import pytest
from batchppo_cli.tables import print_pairs, print_rows
from rich.console import Console

ROWS = [
    {"run": "runs/cartpole/2026-01-31_12-00-00", "mean return": "412.3", "length": "412"},
    {"run": "runs/cartpole/2026-01-31_13-00-00", "mean return": "9.5", "length": "10"},
]


def printed(width: int, folded: str | None = None) -> list[str]:
    console = Console(width=width, record=True, file=io.StringIO())
    print_rows(console, ROWS, texts=("run",), folded=folded)
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_numbers_end_at_the_right() -> None:
    assert printed(80) == [
        "run                                mean return  length",
        "runs/cartpole/2026-01-31_12-00-00        412.3     412",
        "runs/cartpole/2026-01-31_13-00-00          9.5      10",
    ]


def test_a_long_text_goes_on_in_the_next_line() -> None:
    assert printed(45, folded="run") == [
        "run                       mean return  length",
        "runs/cartpole/2026-01-31        412.3     412",
        "_12-00-00",
        "runs/cartpole/2026-01-31          9.5      10",
        "_13-00-00",
    ]


@pytest.mark.parametrize("folded", [None, "run"])
def test_nothing_is_lost_where_it_is_narrow(folded: str | None) -> None:
    lines = printed(30, folded)
    assert max(map(len, lines)) <= 30
    text = "".join("".join(lines).split())
    for row in ROWS:
        for heading, cell in row.items():
            assert heading.replace(" ", "") in text
            assert cell in text


def test_names_are_not_cut_either() -> None:
    console = Console(width=20, record=True, file=io.StringIO())
    print_pairs(console, {"normalize_observations": "true"})
    assert "normalize_observations" in "".join(console.export_text().split()).replace("true", "")
