"""Files and videos are there as a whole, or not at all."""

import contextlib
import errno
import resource
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from batchppo_cli.errors import CommandFailed
from batchppo_cli.files import new_file, write_text
from batchppo_cli.video import open_video


@contextlib.contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Within this context no file can grow beyond `size` bytes: it stands for a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def noise(height: int = 64, width: int = 63) -> np.ndarray:
    return np.random.default_rng(1).integers(256, size=(height, width, 3), dtype=np.uint8)


def record(path: Path, frames: Sequence[np.ndarray]) -> None:
    with open_video(path, 240) as video:
        for frame in frames:
            video.add(frame)


def test_a_file_that_cannot_be_written_keeps_its_old_content(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_text(path, "old")
    with files_of_at_most(10), pytest.raises(OSError, match="too large") as caught:
        write_text(path, "new" * 100)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_of_another_file_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, new_file(tmp_path / "a.txt"):
        (tmp_path / "nothing").read_text()
    assert caught.value.filename == str(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []


def test_a_video_that_does_not_fit_on_the_disk(tmp_path: Path) -> None:
    with (
        files_of_at_most(4096),
        pytest.raises(CommandFailed, match="ffmpeg could not write the video"),
    ):
        record(tmp_path / "a.mp4", [noise()] * 200)
    assert list(tmp_path.iterdir()) == []


def test_a_video_has_one_size(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match=r"\(64, 62, 3\), those before it \(64, 63, 3\)"):
        record(tmp_path / "a.gif", [noise(), noise(width=62)])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.mp4", "b.GIF"])
def test_two_frames_are_a_video(tmp_path: Path, name: str) -> None:
    record(tmp_path / name, [noise()] * 2)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).stat().st_size > 500
