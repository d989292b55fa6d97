"""Video files, written frame by frame; they appear under their name only when complete."""

import contextlib
import os
import tempfile
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import BadInput
from .extras import require_extra

# ffmpeg's arguments for each ending. A GIF gets a palette of its own for each frame, and no more
# frames than viewers show: it counts in hundredths of a second.
_ENCODERS: Mapping[str, Mapping[str, Any]] = {
    ".mp4": {"codec": "libx264", "quality": 7},
    ".gif": {
        "codec": "gif",
        "quality": None,
        "pix_fmt_out": "pal8",
        "output_params": [
            "-filter_complex",
            "fps=25,split[a][b];[a]palettegen=stats_mode=single[p];"
            "[b][p]paletteuse=new=1:dither=none",
        ],
    },
}
FORMATS = tuple(_ENCODERS)

Frame = NDArray[np.uint8]


class VideoWriter:
    """Passes frames on to ffmpeg, one after the other.

    Args:
        path: File to write.
        fps: Frames a second.
        suffix: Format, as the ending of a file.
    """

    def __init__(self, path: str, fps: float, suffix: str) -> None:
        self._path = path
        self._fps = fps
        self._encoder = _ENCODERS[suffix]
        self._ffmpeg: Generator[None, Any, None] | None = None

    def add(self, frame: Frame) -> None:
        """Append a frame: [height, width, 3]."""
        # The colours that every player knows ask for even sizes.
        height, width = frame.shape[:2]
        even = np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
        if self._ffmpeg is None:
            self._ffmpeg = self._start(even)
        self._ffmpeg.send(np.ascontiguousarray(even))

    def close(self) -> None:
        """Wait until everything is written."""
        if self._ffmpeg is not None:
            self._ffmpeg.close()

    def _start(self, frame: Frame) -> Generator[None, Any, None]:
        import imageio_ffmpeg

        ffmpeg: Generator[None, Any, None] = imageio_ffmpeg.write_frames(
            self._path,
            (frame.shape[1], frame.shape[0]),
            fps=self._fps,
            macro_block_size=1,
            ffmpeg_log_level="error",
            **self._encoder,
        )
        ffmpeg.send(None)
        return ffmpeg


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
        with contextlib.closing(VideoWriter(temporary, fps, suffix)) as writer:
            yield writer
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
