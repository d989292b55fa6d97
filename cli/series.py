"""A training with each of several seeds: one that fails does not end the others."""

import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from .console import messages
from .errors import FAILED, describe
from .outcome import Outcome
from .process import exit_code
from .run import Run, new_run
from .run_config import RunConfig
from .training import run_training


@dataclass(frozen=True)
class Failure:
    """A training that ended with an error.

    Attributes:
        task: What was trained on.
        seed: Seed of the run.
        message: The error, in one line.
    """

    task: str
    seed: int
    message: str

    def to_json(self) -> dict[str, Any]:
        """Return the failure as JSON values."""
        return {"task": self.task, "seed": self.seed, "error": self.message, "exit_code": FAILED}


@dataclass
class Series:
    """What became of the trainings.

    Attributes:
        outcomes: Those that ended well, and one that a signal ended.
        failures: Those that ended with an error.
        skipped: The seeds of those that were not finished since a signal ended all.
        exit_code: 0, 1 if one failed, or that of the signal.
    """

    outcomes: list[Outcome] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    exit_code: int = 0

    @property
    def finished(self) -> list[Outcome]:
        """The trainings that ended well."""
        return [outcome for outcome in self.outcomes if not outcome.exit_code]


def run_series(
    configs: Sequence[RunConfig], logdir: Path, progress: str, quiet: bool, debug: bool
) -> Series:
    """Train with each of the settings, which differ in their seed.

    Args:
        configs: The settings.
        logdir: Where run folders are; each is made when its turn comes.
        progress: How to show it: see `progress.make_display`.
        quiet: Whether to print nothing but errors.
        debug: Whether to print the tracebacks of errors.

    Raises:
        Exception: Not even the first training could begin: the others could not either.
    """
    series = Series()
    for number, config in enumerate(configs):
        if not quiet:
            messages().print(f"{config.task}, seed {config.seed}")
        run: Run | None = None
        try:
            run = new_run(config, logdir)
            outcome = run_training(run, progress)
        except KeyboardInterrupt as interrupt:
            series.exit_code = exit_code(interrupt)
            series.skipped = _seeds(configs[number:])
            break
        except Exception as error:
            if number == 0 and (run is None or not run.folder.path.exists()):
                raise
            series.failures.append(_tell(config, error, debug))
            series.exit_code = FAILED
            continue
        series.outcomes.append(outcome)
        if outcome.exit_code:
            series.exit_code = outcome.exit_code
            series.skipped = _seeds(configs[number + 1 :])
            break
    return series


def _seeds(configs: Iterable[RunConfig]) -> list[int]:
    return [config.seed for config in configs]


def _tell(config: RunConfig, error: Exception, debug: bool) -> Failure:
    """Print the error of a training, and return it."""
    is_told = isinstance(error, click.ClickException)
    message = str(error) if is_told else describe(error)
    if debug:
        traceback.print_exception(error)
    messages().print(f"seed {config.seed} failed: {message}", soft_wrap=True)
    return Failure(config.task, config.seed, message)
