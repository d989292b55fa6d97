"""What a training says when it is over."""

import json
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.text import Text

from .console import messages, results
from .errors import CommandFailed
from .formatting import duration, mean_and_std, significant
from .outcome import Evaluation, Outcome
from .series import Series
from .tables import print_pairs, print_rows


def show_outcome(outcome: Outcome, as_json: bool, quiet: bool) -> None:
    """Print what became of a training: a table for people, JSON for programs."""
    _tell_interrupted(outcome)
    console = results()
    if as_json:
        console.out(json.dumps(outcome.to_json(), indent=2), highlight=False)
    elif not quiet and not outcome.exit_code:
        console.print()
        print_pairs(console, _rows_of_one(outcome))
        _show_next_steps(console, [outcome])


def show_series(series: Series, as_json: bool, quiet: bool) -> None:
    """Print what became of trainings with several seeds: those that ended well in any case."""
    for outcome in series.outcomes:
        _tell_interrupted(outcome)
    console = results()
    if as_json:
        document = [outcome.to_json() for outcome in series.outcomes]
        document += [failure.to_json() for failure in series.failures]
        console.out(json.dumps(document, indent=2), highlight=False)
    elif series.finished and not quiet:
        console.print()
        print_rows(console, _rows_of_seeds(series.finished), ("run folder",), "run folder")
        _show_next_steps(console, series.finished)
    if series.skipped:
        messages().print(f"Not trained: {_named(series.skipped)}.")
    if series.failures:
        seeds = [failure.seed for failure in series.failures]
        CommandFailed(f"{_named(seeds)} failed").show()


def _tell_interrupted(outcome: Outcome) -> None:
    if outcome.exit_code:
        messages().print(
            f"Interrupted after {outcome.timesteps:,} steps; the agent so far is saved in "
            f"{outcome.folder}/model.zip",
            soft_wrap=True,
        )


def _named(seeds: Sequence[int]) -> str:
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}"


def _rows_of_one(outcome: Outcome) -> dict[str, str | Text]:
    speed = f"{outcome.steps_per_second:,.0f} steps/s"
    evaluations = {"best evaluation": outcome.best, "last evaluation": outcome.last}
    return {
        "trained": f"{outcome.timesteps:,} steps in {duration(outcome.seconds)} ({speed})",
        **{label: _describe(evaluation) for label, evaluation in evaluations.items() if evaluation},
        "seed": str(outcome.seed),
        "run folder": str(outcome.folder),
    }


def _describe(evaluation: Evaluation) -> Text:
    return Text.assemble(
        (mean_and_std(evaluation.mean, evaluation.std), "bold"),
        f" after {evaluation.timesteps:,} steps",
    )


def _rows_of_seeds(outcomes: Sequence[Outcome]) -> list[dict[str, str]]:
    best = [outcome.best.mean for outcome in outcomes if outcome.best]
    last = [outcome.last.mean for outcome in outcomes if outcome.last]
    rows = [
        _row(
            str(outcome.seed),
            significant(outcome.best.mean) if outcome.best else "-",
            significant(outcome.last.mean) if outcome.last else "-",
            f"{outcome.steps_per_second:,.0f}",
            str(outcome.folder),
        )
        for outcome in outcomes
    ]
    return [*rows, _row("all", _over_seeds(best), _over_seeds(last), "", "")]


def _row(seed: str, best: str, last: str, speed: str, folder: str) -> dict[str, str]:
    return {
        "seed": seed,
        "best return": best,
        "last return": last,
        "steps/s": speed,
        "run folder": folder,
    }


def _over_seeds(values: Sequence[float]) -> str:
    return mean_and_std(float(np.mean(values)), float(np.std(values))) if values else "-"


def _show_next_steps(console: Console, outcomes: Sequence[Outcome]) -> None:
    runs = " ".join(str(outcome.folder) for outcome in outcomes)
    lines = (
        f"batchppo eval {runs}",
        *([f"batchppo plot {runs}"] if len(outcomes) > 1 else []),
        f"batchppo render {outcomes[-1].folder}",
        f"tensorboard --logdir {outcomes[-1].folder.parent.parent}",
    )
    console.print("\nnext", style="dim")
    for line in lines:
        console.print(f"  {line}", soft_wrap=True)
