"""A run about to begin: a new one, or one that goes on where it ended."""

import contextlib
import dataclasses
import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .about import about_this_run
from .build import load_policy
from .errors import BadInput, CommandFailed
from .files import copy_file
from .outcome import Evaluation, load_evaluations, save_evaluations
from .rewind import rewind_csv, rewind_events
from .run_config import RunConfig, load_about
from .run_folder import Choice, RunFolder, find_model, find_run


@dataclass(frozen=True)
class Run:
    """A run about to begin.

    Attributes:
        config: What to train, and how.
        folder: Where everything goes.
        model: The agent to go on with; None for a new one.
        timesteps: Environment steps that this agent was trained for.
        evaluations: Results of the run so far.
    """

    config: RunConfig
    folder: RunFolder
    model: Path | None = None
    timesteps: int = 0
    evaluations: Sequence[Evaluation] = ()

    def begin(self) -> None:
        """Bring the folder to the state that the agent is in: what came after it is cut off."""
        if self.model is None:
            self.config.save(self.folder.config, about_this_run())
            return
        if self.model != self.folder.model:
            copy_file(self.model, self.folder.model)
        rewind_csv(self.folder.progress, self.timesteps)
        rewind_events(self.folder.path, self.timesteps)
        save_evaluations(self.folder.evaluations, self.evaluations)
        about = load_about(self.folder.config)
        resumed = [*about.get("resumed", []), {**about_this_run(), "timesteps": self.timesteps}]
        self.config.save(self.folder.config, {**about, "resumed": resumed})

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Within this context no other process can train in the same folder.

        Raises:
            CommandFailed: Another one does already.
        """
        descriptor = os.open(self.folder.path, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise CommandFailed(f"{self.folder.path} is being trained in already") from error
        try:
            yield
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def forgotten_on_error(self) -> Iterator[None]:
        """If this context ends with an error, the folder of a new run is removed again."""
        try:
            yield
        except BaseException:
            if self.model is None:
                shutil.rmtree(self.folder.path)
            raise


def new_run(config: RunConfig, logdir: Path) -> Run:
    """Return a new run in a new folder."""
    return Run(config, RunFolder.create(logdir, config.task))


def resumed_run(name: str, logdir: Path, changes: dict[str, object]) -> Run:
    """Return a run that goes on where its model is.

    Args:
        name: Run folder, model file or task (its newest run).
        logdir: Where run folders are.
        changes: Settings that differ from those of the run.

    Raises:
        BadInput: There is no such run or model, or it has all the steps that were asked for.
    """
    if Path(name).is_file():
        found = find_model(Choice(name, logdir))
        folder, model = found.run, found.path
    else:
        folder = find_run(name, logdir)
        model = folder.model
    if folder is None:
        raise BadInput(f"{name} is not in a run folder: there is no run to resume")
    if not model.is_file():
        raise BadInput(f"{folder.path} has no {model.name} to go on with")
    config = dataclasses.replace(RunConfig.load(folder.config), **changes)  # type: ignore[arg-type]
    timesteps = load_policy(model).metadata["num_timesteps"]
    if timesteps >= config.total_timesteps:
        raise BadInput(
            f"{model} has {timesteps:,} steps already; --timesteps, the new total, must be greater"
        )
    evaluations = load_evaluations(folder.evaluations)
    kept = [evaluation for evaluation in evaluations if evaluation.timesteps <= timesteps]
    return Run(config, folder, model, timesteps, kept)
