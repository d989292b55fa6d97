"""Which logger an agent writes to."""

from __future__ import annotations

from pathlib import Path

from batchppo.logger import Logger, configure_logger
from batchppo.model_file import PathLike


class RunLogger:
    """The logger that a user set, or else one made for each run.

    Args:
        verbose: whether a run prints its figures.
        tensorboard_log: folder for TensorBoard's files; None for none.
    """

    def __init__(self, verbose: int = 0, tensorboard_log: PathLike | None = None) -> None:
        self.verbose = verbose
        self.tensorboard_log = tensorboard_log
        self._logger: Logger | None = None
        self._given = False

    @property
    def current(self) -> Logger:
        """The logger of the present or last run.

        Raises:
            ValueError: there was no run, and no logger was given.
        """
        if self._logger is None:
            raise ValueError("there is no logger yet: learn() makes one, set_logger() sets one")
        return self._logger

    def give(self, logger: Logger) -> None:
        """Takes a user's logger, for all runs to come."""
        self._logger = logger
        self._given = True

    def open(self, name: str, new: bool) -> Logger:
        """Returns the logger of a run, which is new or goes on with the last one's."""
        if self._logger is not None and (self._given or not new):
            return self._logger
        self.close()
        formats = ["stdout"] if self.verbose else []
        folder = None
        if self.tensorboard_log is not None:
            folder = numbered_folder(Path(self.tensorboard_log), name, new)
            formats.append("tensorboard")
        self._logger = configure_logger(folder, formats)
        return self._logger

    def close(self) -> None:
        """Closes the logger, if there is one."""
        if self._logger is not None:
            self._logger.close()


def numbered_folder(base: Path, name: str, new: bool) -> Path:
    """Returns `<base>/<name>_<number>`: the next number if `new`, else the last, at least 1."""
    suffixes = [path.name.removeprefix(f"{name}_") for path in base.glob(f"{name}_*")]
    last = max((int(suffix) for suffix in suffixes if suffix.isdecimal()), default=0)
    return base / f"{name}_{last + 1 if new else max(last, 1)}"
