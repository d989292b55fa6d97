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

    @property
    def evaluations(self) -> Path:
        """Results of all evaluations."""
        return self.path / "evaluations.json"

    @property
    def checkpoints(self) -> Path:
        """Folder of the checkpoints, which are called model_STEPS_steps.zip."""
        return self.path / "checkpoints"

    def model_at(self, which: str) -> Path:
        """Return a model file of the run.

        Args:
            which: "best" (the last one, if no evaluation was made), "last", or the environment
                steps of a checkpoint.

        Raises:
            BadInput: There is no such file; the message says which ones there are.
        """
        if which not in ("best", "last") and not which.isdecimal():
            raise BadInput(f"--checkpoint must be best, last or a number of steps, got {which!r}")
        candidates = {
            "best": (self.best_model, self.model),
            "last": (self.model,),
        }.get(which, (self.checkpoints / f"model_{which}_steps.zip",))
        for path in candidates:
            if path.is_file():
                return path
        if which in ("best", "last"):
            names = " nor ".join(path.name for path in candidates)
            raise BadInput(f"{self.path} has no model yet: no {names}.")
        steps = sorted(
            int(path.name.split("_")[1]) for path in self.checkpoints.glob("model_*.zip")
        )
        there = f"There are: {', '.join(map(str, steps))}." if steps else "It has no checkpoints."
        raise BadInput(f"{self.path} has no checkpoint at {which} steps. {there}")

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
class Choice:
    """What the command line says about which model to use.

    Attributes:
        run: Run folder, model file or task.
        logdir: Where run folders are.
        checkpoint: Which model of a run; see `RunFolder.model_at`.
        env_id: Environment to use instead of the run's own.
    """

    run: str
    logdir: Path
    checkpoint: str = "best"
    env_id: str | None = None


@dataclass(frozen=True)
class TrainedModel:
    """A model file and the run that it belongs to.

    Attributes:
        path: The model file.
        run: Its run folder, or None for a model file that stands alone.
    """

    path: Path
    run: RunFolder | None


def find_model(choice: Choice) -> TrainedModel:
    """Return the model that is meant: a file, or one of a run's models.

    Raises:
        BadInput: There is none; the message says what was looked for.
    """
    path = Path(choice.run)
    if path.is_file():
        if choice.checkpoint != Choice.checkpoint:
            raise BadInput(f"{path} is one model already: --checkpoint is for a run or a task")
        return TrainedModel(path, _run_of(path))
    run = find_run(choice.run, choice.logdir)
    return TrainedModel(run.model_at(choice.checkpoint), run)


def find_runs(name: str, logdir: Path) -> list[RunFolder]:
    """Return the runs that RUN means where several are welcome: one folder, or all of a task.

    Raises:
        BadInput: There are none.
    """
    for folder in (Path(name), logdir / name):
        if (folder / "config.json").is_file():
            return [RunFolder(folder)]
        runs = list(_runs_in(folder))
        if runs:
            return runs
    raise _not_found(name, logdir)


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
    raise _not_found(name, logdir)


def _not_found(name: str, logdir: Path) -> BadInput:
    """Return the error that says what was looked for."""
    if Path(name).exists():
        return BadInput(f"{name} is no run folder: it has no config.json.")
    tasks = (
        [path.name for path in logdir.iterdir() if list(_runs_in(path))] if logdir.is_dir() else []
    )
    hint = did_you_mean(name, tasks) or (
        f" There are: {', '.join(sorted(tasks))}." if tasks else ""
    )
    return BadInput(
        f"{name!r} is no model file, no run folder, and no task with a run in {logdir}/.{hint}"
    )


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
