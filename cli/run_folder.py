"""Run folders: `LOGDIR/TASK/TIME`, where a run keeps everything that it leaves behind."""

import datetime
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .errors import BadInput
from .suggestions import did_you_mean

_TIME = "%Y-%m-%d_%H-%M-%S"
_NAME = re.compile(r"(?P<time>\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d)(?:_(?P<number>\d+))?")


@dataclass(frozen=True)
class RunFolder:
    """The files of one run.

    Attributes:
        path: The folder.
    """

    path: Path

    @property
    def config(self) -> Path:
        """Settings of the run."""
        return self.path / "config.json"

    @property
    def model(self) -> Path:
        """The agent as it was at the end, or at the last checkpoint."""
        return self.path / "model.zip"

    @property
    def best_model(self) -> Path:
        """The agent that did best in an evaluation during training."""
        return self.path / "best_model.zip"

    @property
    def progress(self) -> Path:
        """What was logged, one row for each iteration."""
        return self.path / "progress.csv"

    @classmethod
    def create(cls, logdir: Path, task: str) -> "RunFolder":
        """Make a new, empty folder for a run of `task`; never one that is there already."""
        time = datetime.datetime.now().strftime(_TIME)
        path = logdir / task / time
        for number in itertools.count(2):
            try:
                path.mkdir(parents=True)
                break
            except FileExistsError:
                if not path.is_dir():
                    raise
                path = logdir / task / f"{time}_{number}"
        return cls(path)


@dataclass(frozen=True)
class TrainedModel:
    """A model file and the run that it belongs to.

    Attributes:
        path: The model file.
        run: Its run folder, or None for a model file that stands alone.
    """

    path: Path
    run: RunFolder | None


def find_model(name: str, logdir: Path) -> TrainedModel:
    """Return the model that RUN on the command line means.

    Args:
        name: A model file; a run folder (its best model, or else its last one); or a task, which
            means its newest run that has a model.
        logdir: Where run folders are.

    Raises:
        BadInput: There is none; the message says what was looked for.
    """
    path = Path(name)
    if path.is_file():
        return TrainedModel(path, _run_of(path))
    return _model_of(find_run(name, logdir))


def find_run(name: str, logdir: Path) -> RunFolder:
    """Return the run that RUN on the command line means: a folder, or a task's newest run.

    Raises:
        BadInput: There is none; the message says what was looked for.
    """
    for folder in (Path(name), logdir / name):
        if (folder / "config.json").is_file():
            return RunFolder(folder)
        runs = [run for run in _runs_in(folder) if run.model.is_file() or run.best_model.is_file()]
        if runs:
            return runs[-1]
        if list(_runs_in(folder)):
            raise BadInput(f"no run in {folder} has a model yet.")
    if Path(name).exists():
        raise BadInput(f"{name} is no run folder: it has no config.json.")
    tasks = (
        [path.name for path in logdir.iterdir() if list(_runs_in(path))] if logdir.is_dir() else []
    )
    hint = did_you_mean(name, tasks) or (
        f" There are: {', '.join(sorted(tasks))}." if tasks else ""
    )
    raise BadInput(
        f"{name!r} is no model file, no run folder, and no task with a run in {logdir}/.{hint}"
    )


def _model_of(run: RunFolder) -> TrainedModel:
    for path in (run.best_model, run.model):
        if path.is_file():
            return TrainedModel(path, run)
    raise BadInput(f"{run.path} has no model yet: neither best_model.zip nor model.zip.")


def _run_of(model: Path) -> RunFolder | None:
    """Return the run whose folder, or whose folder of checkpoints, holds the model file."""
    for folder in (model.parent, model.parent.parent):
        if (folder / "config.json").is_file():
            return RunFolder(folder)
    return None


def _runs_in(folder: Path) -> Iterator[RunFolder]:
    """Yield the runs in a task's folder, oldest first."""
    if not folder.is_dir():
        return
    found = []
    for path in folder.iterdir():
        match = _NAME.fullmatch(path.name)
        if match and (path / "config.json").is_file():
            found.append((match["time"], int(match["number"] or 1), path))
    yield from (RunFolder(path) for _, _, path in sorted(found))
