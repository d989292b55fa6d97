"""The journal of a search: what was cut off goes, and errors name the file."""

import errno
import os
from pathlib import Path

import pytest
from batchppo_cli.errors import BadInput, describe
from batchppo_cli.study_file import open_journal

WHOLE = '{"op_code":0,"worker_id":"a","study_name":"cartpole","directions":[2]}\n'


def names(path: Path) -> list[str]:
    with open_journal(path) as storage:
        return [study.study_name for study in storage.get_all_studies()]


def test_a_line_that_was_cut_off_goes(tmp_path: Path) -> None:
    path = tmp_path / "study.log"
    path.write_text(f'{WHOLE}{{"op_code":2,"wor')
    assert names(path) == ["cartpole"]
    assert path.read_text() == WHOLE
    assert names(tmp_path / "new.log") == []


def test_what_somebody_else_is_writing_stays(tmp_path: Path) -> None:
    path = tmp_path / "study.log"
    path.write_text(WHOLE)
    with open_journal(path):
        half = f'{WHOLE}{{"op_code":2,"wor'
        path.write_text(half)
        names(path)
        assert path.read_text() == half


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "study.log").write_text(f"{WHOLE}x\n{WHOLE}")
    with pytest.raises(BadInput, match=r"study\.log, line 2 is damaged"):
        names(tmp_path / "study.log")


@pytest.mark.parametrize("hidden", [False, True])
def test_a_full_disk_names_the_file(tmp_path: Path, hidden: bool) -> None:
    """Optuna has an assertion of its own fail after it."""

    def write() -> None:
        try:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            if hidden:
                raise AssertionError  # noqa: B904 - as it happens there
            raise

    with pytest.raises(OSError, match="No space left") as caught, open_journal(tmp_path / "s.log"):
        write()
    assert describe(caught.value) == f"{tmp_path / 's.log'}: No space left on device"


def test_other_errors_are_passed_on(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="mine"), open_journal(tmp_path / "s.log"):
        raise AssertionError("mine")


def test_a_full_disk_as_tensorflow_tells_it() -> None:
    class ResourceExhaustedError(Exception):
        pass

    message = "{{function_node x}} runs/a/events.v2; No space left on device Failed to flush 1"
    assert describe(ResourceExhaustedError(message)) == "runs/a/events.v2: No space left on device"
    assert describe(ResourceExhaustedError("No space left on device")) == "No space left on device"
