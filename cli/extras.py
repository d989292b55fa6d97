"""Optional dependencies: which environments need which extra, and whether it is there."""

import importlib.util

from .errors import CommandFailed

# extra -> the modules that it brings.
MODULES = {
    "mujoco": ("mujoco", "imageio", "packaging"),
    "box2d": ("Box2D", "pygame"),
    "atari": ("ale_py",),
    "render": ("pygame", "imageio_ffmpeg"),
    "plot": ("matplotlib",),
    "tune": ("optuna",),
}

_ENTRY_POINTS = {"gymnasium.envs.mujoco": "mujoco", "gymnasium.envs.box2d": "box2d"}


def require_extra(extra: str, purpose: str) -> None:
    """Raise an error of one line, which names the extra, unless all its modules are installed.

    Args:
        extra: One of the extras of `pyproject.toml`.
        purpose: What needs it: the beginning of the error message.
    """
    missing = [name for name in MODULES[extra] if importlib.util.find_spec(name) is None]
    if missing:
        raise CommandFailed(
            f'{purpose} needs {" and ".join(missing)}: pip install "batchppo[{extra}]"'
        )


def require_extra_of(env_id: str, entry_point: object) -> None:
    """Raise unless what the environment's entry point needs is installed."""
    for prefix, extra in _ENTRY_POINTS.items():
        if isinstance(entry_point, str) and entry_point.startswith(prefix):
            require_extra(extra, env_id)
