"""Settings of this process that must stand before other packages are imported."""

import contextlib
import ctypes.util
import os
import signal
from collections.abc import Iterator
from types import FrameType

from .errors import INTERRUPTED, CommandFailed

_TERMINATED = 128 + signal.SIGTERM


class Terminated(KeyboardInterrupt):
    """Somebody asked this process to end: a batch system, a shutdown, `kill`."""


def silence_tensorflow() -> None:
    """Keep the start-up messages of TensorFlow's C++ parts off the screen, unless asked for."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")


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
