"""Settings of this process that must stand before other packages are imported."""

import atexit
import contextlib
import ctypes.util
import logging
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from types import FrameType

from .errors import INTERRUPTED, CommandFailed

_NO_MESSAGES = "3"
_TERMINATED = 128 + signal.SIGTERM


class Terminated(KeyboardInterrupt):
    """Somebody asked this process to end: a batch system, a shutdown, `kill`."""


@contextlib.contextmanager
def silent_tensorflow() -> Iterator[None]:
    """Within this context, TensorFlow may be imported without messages on the screen.

    Its C++ parts write to the error stream before they look at any setting, so the stream itself is
    turned aside; what was written is shown if the import fails. A level of messages that somebody
    set is respected, unless it is the one without any, which an earlier context has set.
    """
    if os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", _NO_MESSAGES) != _NO_MESSAGES:
        yield
        return
    logging.getLogger("tensorflow").setLevel(logging.ERROR)  # advice about tracing, mostly
    sys.stderr.flush()
    stream = os.dup(2)
    with tempfile.TemporaryFile() as aside:
        os.dup2(aside.fileno(), 2)
        try:
            yield
        except ImportError:
            aside.seek(0)
            os.write(stream, aside.read())
            raise
        finally:
            os.dup2(stream, 2)
            os.close(stream)


@contextlib.contextmanager
def silent_workers(debug: bool) -> Iterator[None]:
    """Within this context, tracebacks of worker processes are not printed, unless for debugging.

    The error that they end with is raised here all the same.
    """
    with warnings.catch_warnings():
        if not debug:
            warnings.filterwarnings("ignore", r".*ERROR: ")
        yield


def leave(code: int) -> None:
    """End this process, at once if TensorFlow is in it.

    TensorFlow may be compiling in a thread: to leave in the usual way would wait for it, or crash
    in it. Whoever calls this has closed everything; what was registered to happen at exit, such as
    the removal of TensorFlow's temporary files, still happens.
    """
    if "tensorflow" in sys.modules:
        atexit._run_exitfuncs()
        with contextlib.suppress(OSError):  # nobody may be reading any more
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def prepare_headless_rendering(env_id: str, entry_point: object) -> None:
    """Let environments render to arrays on a machine without a display.

    Raises:
        CommandFailed: MuJoCo has no way to draw without a display.
    """
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
    if "mujoco" not in str(entry_point).lower() or "MUJOCO_GL" in os.environ:
        return
    for backend, library in (("egl", "EGL"), ("osmesa", "OSMesa")):
        if ctypes.util.find_library(library):
            os.environ["MUJOCO_GL"] = backend
            return
    if not os.environ.get("DISPLAY"):
        raise CommandFailed(
            f"{env_id} cannot be drawn without a display: MuJoCo needs the library EGL or OSMesa "
            "for that (Debian, Ubuntu: sudo apt install libegl1 libgl1-mesa-dri, or libosmesa6)"
        )


def require_display() -> None:
    """Raise CommandFailed unless there is something to open a window on."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    places = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
    if sys.platform != "darwin" and not any(os.environ.get(name) for name in places):
        raise CommandFailed(
            "there is no display to open a window on; without --live, a video is made"
        )


@contextlib.contextmanager
def terminate_like_interrupt() -> Iterator[None]:
    """Within this context, SIGTERM ends the work as Ctrl-C does: what there is gets saved."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Terminated

    previous = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Within this context, Ctrl-C and SIGTERM do nothing: a second one must not spoil a save."""
    previous = {
        number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def exit_code(interrupt: KeyboardInterrupt) -> int:
    """Return the exit code of a process that ended because of `interrupt`."""
    return _TERMINATED if isinstance(interrupt, Terminated) else INTERRUPTED
