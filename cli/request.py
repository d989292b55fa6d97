"""What `batchppo train` is to train: a new run, a run for each of several seeds, or an old run."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from .errors import BadInput
from .plan import TrainOptions, cannot_resume_with, plan_runs, resumable_changes
from .run import Run, new_run, resumed_run


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

    def runs(self, options: TrainOptions, logdir: Path) -> Iterator[Run]:
        """Yield the runs to train; the folder of each is made when its turn comes.

        Args:
            options: What the command line changes of the settings.
            logdir: Where run folders are.

        Raises:
            BadInput: The command line contradicts itself, or names what does not exist.
        """
        if self.resume is not None:
            others = {"TASK": self.task, "--config": self.file, "--seeds": self.seeds}
            given = [name for name, value in others.items() if value is not None]
            if given:
                raise cannot_resume_with(given)
            yield resumed_run(self.resume, logdir, resumable_changes(options))
            return
        if self.seeds is not None and options.seed is not None:
            raise BadInput("--seed and --seeds exclude each other")
        for config in plan_runs(self.task, self.file, self.seeds, options):
            yield new_run(config, logdir)
