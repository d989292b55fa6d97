"""Video files, written frame by frame; they appear under their name only when complete."""

import contextlib
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from .errors import BadInput, CommandFailed
from .extras import require_extra
from .files import new_file

# ffmpeg's arguments for each ending. A GIF gets a palette of its own for each frame, and no more
# frames than viewers show: it counts in hundredths of a second.
_ENCODERS: Mapping[str, Sequence[str]] = {
    ".mp4": ("-c:v", "libx264", "-crf", "18", "-pix_fmt", "yuv420p", "-movflags", "+faststart"),
    ".gif": (
        "-filter_complex",
        "fps=25:round=up,split[a][b];[a]palettegen=stats_mode=single[p];"
        "[b][p]paletteuse=new=1:dither=none",
    ),
}
FORMATS = tuple(_ENCODERS)

Frame = NDArray[np.uint8]

_WHERE = re.compile(r"^\[[^]]*\] ")  # the part of ffmpeg that a message comes from


class VideoWriter:
    """Passes frames on to ffmpeg, one after the other.

    Args:
        path: File to write; ffmpeg takes the format from its ending.
        fps: Frames a second.
    """

    def __init__(self, path: Path, fps: float) -> None:
        self._path = path
        self._fps = fps
        self._shape: tuple[int, ...] = ()
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._ffmpeg: subprocess.Popen[bytes] | None = None

    def add(self, frame: Frame) -> None:
        """Append a frame: [height, width, 3].

        Raises:
            CommandFailed: The frame has another size than those before it, or ffmpeg gave up.
        """
        if self._ffmpeg is None:
            self._shape = frame.shape
        elif frame.shape != self._shape:
            raise CommandFailed(
                f"a picture has the shape {frame.shape}, those before it {self._shape}: a video "
                "has one size"
            )
        # The colours that every player knows ask for even sizes.
        height, width = frame.shape[:2]
        even = np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
        if self._ffmpeg is None:
            self._ffmpeg = self._start(even)
        try:
            self._input.write(np.ascontiguousarray(even).data)
        except BrokenPipeError:
            self.finish()

    def finish(self) -> None:
        """Wait until everything is written.

        Raises:
            CommandFailed: It could not be written.
        """
        if self._ffmpeg is None:
            return
        with contextlib.suppress(BrokenPipeError):
            self._input.close()
        if self._ffmpeg.wait() != 0:
            self._complaints.seek(0)
            lines = self._complaints.read().decode(errors="replace").splitlines()
            reason = _WHERE.sub("", lines[0]) if lines else f"exit code {self._ffmpeg.returncode}"
            raise CommandFailed(f"ffmpeg could not write the video: {reason}")

    def close(self) -> None:
        """Let go of ffmpeg, whether it is done or not."""
        if self._ffmpeg is not None:
            self._ffmpeg.kill()
            with contextlib.suppress(BrokenPipeError):
                self._input.close()
            self._ffmpeg.wait()
        self._complaints.close()

    @property
    def _input(self) -> IO[bytes]:
        if self._ffmpeg is None or self._ffmpeg.stdin is None:
            raise RuntimeError("ffmpeg has not been started")
        return self._ffmpeg.stdin

    def _start(self, frame: Frame) -> subprocess.Popen[bytes]:
        import imageio_ffmpeg

        size = f"{frame.shape[1]}x{frame.shape[0]}"
        source = ("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size, "-r", str(self._fps))
        target = (*_ENCODERS[self._path.suffix], "-an", "-v", "error", str(self._path))
        return subprocess.Popen(
            [imageio_ffmpeg.get_ffmpeg_exe(), "-y", *source, "-i", "-", *target],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._complaints,
            start_new_session=True,  # Ctrl-C ends it through `close`
        )


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
    with new_file(path) as temporary, contextlib.closing(VideoWriter(temporary, fps)) as writer:
        yield writer
        writer.finish()
