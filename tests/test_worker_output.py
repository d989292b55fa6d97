"""What workers print reaches the user once."""

import functools

import numpy as np
import pytest
from stub_envs import CountingEnv, PrintingEnv

from batchgym import ProcessVectorEnv
from batchgym.output import LineFilter


def shown(*printed, start=()):
    """Returns which of (worker, line) pairs are shown, after those at the start."""
    line_filter = LineFilter()
    first = [line_filter.passes(*pair) for pair in start]
    line_filter.end_start()
    return first + [line_filter.passes(*pair) for pair in printed]


def test_a_line_that_several_workers_print_is_shown_once():
    assert shown((0, "a"), (1, "a"), (2, "a"), (1, "b")) == [True, False, False, True]


def test_a_line_that_one_worker_prints_twice_is_shown_twice():
    assert shown((0, "a"), (0, "a"), (1, "a"), (1, "a"), (1, "a")) == [
        True,
        True,
        False,
        False,
        True,
    ]


def test_while_environments_are_made_once_however_often():
    assert shown((0, "a"), start=[(0, "a"), (0, "a"), (1, "a")]) == [True, False, False, True]


def test_memory_is_bounded():
    line_filter = LineFilter()
    line_filter.end_start()
    for number in range(5000):
        line_filter.passes(0, str(number))
    assert len(line_filter._shown) <= 1000
    assert len(line_filter._printed) <= 1000


@pytest.mark.parametrize("repeat", range(5))
def test_output_of_two_workers(capsys, repeat):
    fns = [functools.partial(PrintingEnv, name) for name in ("x", "x", "y", "y")]
    env = ProcessVectorEnv(fns, num_workers=2)
    env.reset()
    env.step(np.zeros(4, np.int64))
    env.step(np.zeros(4, np.int64))
    env.close()
    out, err = capsys.readouterr()
    assert err == "an old model format\n"
    lines = out.splitlines()
    # Each worker prints each line four times: twice per step, for two environments.
    assert {line: lines.count(line) for line in lines} == {
        "all alike": 4,
        "step of x": 4,
        "step of y": 4,
    }


def test_output_without_a_last_newline(capsys):
    def prompt(self=None):
        import sys

        sys.stdout.write("no newline")
        sys.stdout.flush()

    env = ProcessVectorEnv([CountingEnv], num_workers=1)
    env.set_attr("prompt", prompt)
    env.call("prompt")
    env.close()
    assert capsys.readouterr().out == "no newline\n"


def test_a_closed_stream_of_the_owner_is_no_fault(monkeypatch):
    env = ProcessVectorEnv([functools.partial(PrintingEnv, "x")], num_workers=1)
    env.reset()
    monkeypatch.setattr("sys.stdout", None)
    env.step([0])
    env.close()
    monkeypatch.undo()
