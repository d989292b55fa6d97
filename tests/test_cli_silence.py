"""What TensorFlow says when it is imported stays off the screen."""

import os

import pytest
from batchppo_cli.process import silent_tensorflow

LEVEL = "TF_CPP_MIN_LOG_LEVEL"


def test_every_context_is_silent(monkeypatch: pytest.MonkeyPatch, capfd) -> None:
    """A resumed run has two: the first reads the model, TensorFlow is imported in the second."""
    monkeypatch.setenv(LEVEL, "0")
    monkeypatch.delenv(LEVEL)
    for _ in range(2):
        with silent_tensorflow():
            os.write(2, b"greeting\n")
    os.write(2, b"behind\n")
    assert capfd.readouterr().err == "behind\n"


def test_a_level_that_somebody_set_is_respected(monkeypatch: pytest.MonkeyPatch, capfd) -> None:
    monkeypatch.setenv(LEVEL, "1")
    with silent_tensorflow():
        os.write(2, b"wanted\n")
    assert capfd.readouterr().err == "wanted\n"
    assert os.environ[LEVEL] == "1"


def test_what_a_failed_import_said_is_shown(monkeypatch: pytest.MonkeyPatch, capfd) -> None:
    monkeypatch.setenv(LEVEL, "3")

    def fail() -> None:
        with silent_tensorflow():
            os.write(2, b"why\n")
            raise ImportError

    with pytest.raises(ImportError):
        fail()
    assert capfd.readouterr().err == "why\n"
