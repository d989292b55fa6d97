"""The progress of a training, on screens of any width."""

import io
import re

import pytest
from batchppo_cli.outcome import Evaluation
from batchppo_cli.progress import make_display
from rich.console import Console


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_the_bar_is_one_line_that_fits(width: int) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=width, no_color=True)
    with make_display(console, "pendulum", 1_000_000, 0, "auto") as display:
        display.advance(20_480, -1234.5)
        display.evaluated(Evaluation(20_480, (-1200.0,), (200,)), is_best=True)
    text = re.sub(r"\x1b\[[\d;]*m", "", console.file.getvalue())
    drawn = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "\r", text)  # back to the beginning of a line
    lines = [line.rstrip() for line in re.split("[\r\n]+", drawn) if line.strip()]
    assert max(map(len, lines)) <= width
    assert "20,480 steps  evaluation: -1,200 ± 0" in " ".join(lines)
    assert "20,480/1,000,000" in lines[-1]
    assert lines[-1].startswith("pendulum")


def test_a_log_has_lines_without_colours() -> None:
    console = Console(file=io.StringIO(), width=40)
    with make_display(console, "pendulum", 1000, 0, "auto") as display:
        display.advance(500, None)
        display.advance(501, 1.0)  # too soon for another line
        display.evaluated(Evaluation(1000, (1.5,), (3,)), is_best=False)
    first, last = console.file.getvalue().splitlines()
    assert first.startswith("  500/1,000 steps  ")
    assert "mean return -" in first
    assert last == "1,000/1,000 steps  evaluation: 1.500 ± 0.000"
