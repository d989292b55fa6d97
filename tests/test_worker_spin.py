"""When waiting spins, and when it blocks."""

from types import SimpleNamespace

import pytest

from batchgym import spin
from batchgym.spin import Spin


class Clock:
    """Time that passes by a microsecond whenever somebody looks, and by `sleep`."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        self.now += 1e-6
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(spin, "time", SimpleNamespace(monotonic=clock.monotonic))
    return clock


@pytest.fixture
def alone(monkeypatch):
    monkeypatch.setattr(spin, "runnable_tasks", lambda: 1)


def wait(spinner, found_after=None, sleep=lambda: None):
    """Waits for something that is found at the n-th look; tells who found it."""
    looks = []

    def look(timeout):
        looks.append(timeout)
        return found_after is not None and len(looks) >= found_after

    def block():
        sleep()
        looks.append("blocked")
        return True

    assert spinner.wait(look, block)
    return "blocked" if looks[-1] == "blocked" else "spun", len(looks)


def test_found_while_spinning(alone):
    assert wait(Spin(3), found_after=2) == ("spun", 2)


def test_blocks_when_time_is_up(alone):
    found, looks = wait(Spin(3))
    assert found == "blocked"
    assert looks > 1


def test_blocks_at_once_after_a_long_wait_and_spins_again_after_a_short_one(alone, clock):
    spinner = Spin(3)
    assert wait(spinner, sleep=lambda: clock.sleep(0.01))[0] == "blocked"
    assert wait(spinner, found_after=1) == ("blocked", 1)
    assert wait(spinner, found_after=1) == ("spun", 1)


def test_never(alone):
    assert wait(Spin(0), found_after=1) == ("blocked", 1)


def test_not_while_others_want_the_cores(monkeypatch):
    monkeypatch.setattr(spin, "_LOOK_SECONDS", 0.0)
    running = 0
    monkeypatch.setattr(spin, "runnable_tasks", lambda: running)
    spinner = Spin(1000)
    assert wait(spinner, found_after=1) == ("spun", 1)
    running = 1001
    found = [wait(spinner, found_after=1)[0] for _ in range(10)]
    assert found[0] == "spun", "one look may have met an exception"
    assert found[-1] == "blocked"
    running = 1000
    assert [wait(spinner, found_after=1)[0] for _ in range(10)][-1] == "spun"


def test_runnable_tasks(monkeypatch, tmp_path):
    assert spin.runnable_tasks() >= 1
    monkeypatch.setattr(spin, "_LOADAVG", tmp_path / "missing")
    assert spin.runnable_tasks() == 0
