"""Video files, written frame by frame; they appear under their name only when complete."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .errors import BadInput
from .extras import require_extra

FORMATS = (".mp4", ".gif")
_GIF_MAX_FPS = 30  # A GIF counts hundredths of a second, and viewers slow down what is faster.

Frame = NDArray[np.uint8]


class VideoWriter(Protocol):
    """Takes the frames of a video, one after the other."""

    def add(self, frame: Frame) -> None:
        """Append a frame: [height, width, 3]."""


def check_output(path: Path) -> None:
    """Raise BadInput unless `path` has a format that can be written, in a folder that exists."""
    if path.suffix.lower() not in FORMATS:
        written = f"{path.suffix!r} files" if path.suffix else "a file without an ending"
        raise BadInput(f"cannot write {written} ({path}); use {' or '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise BadInput(f"the folder {path.parent} for the video does not exist")


@contextlib.contextmanager
def open_video(path: Path, fps: float) -> Iterator[VideoWriter]:
    """Yield a writer whose frames are at `path` when the context ends without an error."""
    require_extra("render", "recording a video")
    check_output(path)
    suffix = path.suffix.lower()
    descriptor, temporary = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.stem}.", suffix=suffix
    )
    os.close(descriptor)
    try:
        writer = _GifWriter(temporary, fps) if suffix == ".gif" else _Mp4Writer(temporary, fps)
        with contextlib.closing(writer):
            yield writer
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


class _Mp4Writer:
    """H.264 with the colours that every player knows, which ask for even sizes."""

    def __init__(self, path: str, fps: float) -> None:
        import imageio.v2 as imageio

        self._writer: Any = imageio.get_writer(path, fps=fps, macro_block_size=1, quality=7)

    def add(self, frame: Frame) -> None:
        height, width = frame.shape[:2]
        padding = ((0, height % 2), (0, width % 2), (0, 0))
        self._writer.append_data(np.pad(frame, padding, mode="edge"))

    def close(self) -> None:
        self._writer.close()


class _GifWriter:
    """A GIF that repeats for ever and leaves out frames of a video that is too fast for it."""

    def __init__(self, path: str, fps: float) -> None:
        import imageio.v2 as imageio

        self._keep_every = -(-fps // _GIF_MAX_FPS)
        self._seen = 0
        milliseconds = 1000 * self._keep_every / fps
        self._writer: Any = imageio.get_writer(path, mode="I", duration=milliseconds, loop=0)

    def add(self, frame: Frame) -> None:
        if self._seen % self._keep_every == 0:
            self._writer.append_data(frame)
        self._seen += 1

    def close(self) -> None:
        self._writer.close()
