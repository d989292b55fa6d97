"""What `batchppo train` is to train: a new run, a run for each of several seeds, or an old run."""

from dataclasses import dataclass
from pathlib import Path

import click

from .errors import BadInput
from .plan import TrainOptions, cannot_resume_with, plan_runs, resumable_changes
from .run import Run, new_run, resumed_run
from .run_config import RunConfig


@dataclass(frozen=True, kw_only=True)
class Request:
    """Where the settings of a run come from; None for what the command line did not say.

    Attributes:
        task: Preset or environment id.
        file: File with settings.
        seeds: Text that names seeds.
        resume: Run to go on with.
    """

    task: str | None
    file: Path | None
    seeds: str | None
    resume: str | None

    def __post_init__(self) -> None:
        if self.task is None and self.file is None and self.resume is None:
            raise click.UsageError("Missing argument 'TASK' (or --config FILE, or --resume RUN).")

    def run(self, options: TrainOptions, logdir: Path) -> Run:
        """Return the one run to train: a new one, in a new folder, or an old one.

        Args:
            options: What the command line changes of the settings.
            logdir: Where run folders are.

        Raises:
            BadInput: The command line contradicts itself, or names what does not exist.
        """
        if self.resume is not None:
            self._require_alone()
            return resumed_run(self.resume, logdir, resumable_changes(options))
        (config,) = plan_runs(self.task, self.file, None, options)
        return new_run(config, logdir)

    def configs(self, options: TrainOptions) -> list[RunConfig]:
        """Return the settings of the new runs to train, one for each of the seeds.

        Raises:
            BadInput: The command line contradicts itself, or names what does not exist.
        """
        self._require_alone()
        if options.seed is not None:
            raise BadInput("--seed and --seeds exclude each other")
        return plan_runs(self.task, self.file, self.seeds, options)

    def _require_alone(self) -> None:
        """Raise BadInput if an old run is named beside what a new one is made of."""
        others = {"TASK": self.task, "--config": self.file, "--seeds": self.seeds}
        given = [name for name, value in others.items() if value is not None]
        if self.resume is not None and given:
            raise cannot_resume_with(given)
