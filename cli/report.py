"""What a training says when it is over."""

import json
from dataclasses import asdict

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .console import messages, results
from .formatting import duration, significant
from .outcome import Evaluation, Outcome


def show_outcome(outcome: Outcome, as_json: bool, quiet: bool) -> None:
    """Print what became of a training: a table for people, or JSON for programs."""
    console = results()
    if outcome.exit_code:
        messages().print(
            f"Interrupted after {outcome.timesteps:,} steps; the agent so far is saved in "
            f"{outcome.folder}/model.zip",
            soft_wrap=True,
        )
        return
    if quiet and not as_json:
        return
    if as_json:
        document = {
            **asdict(outcome),
            "folder": str(outcome.folder),
            "best": asdict(outcome.best) if outcome.best else None,
        }
        console.out(json.dumps(document, indent=2), highlight=False)
        return
    _show_table(console, outcome)
    _show_next_steps(console, outcome)


def _show_table(console: Console, outcome: Outcome) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    table.add_row(
        "trained",
        f"{outcome.timesteps:,} steps in {duration(outcome.seconds)} "
        f"({outcome.steps_per_second:,.0f} steps/s)",
    )
    for label, evaluation in (("best evaluation", outcome.best), ("last evaluation", outcome.last)):
        if evaluation is not None:
            table.add_row(label, _evaluation(evaluation))
    table.add_row("seed", str(outcome.seed))
    table.add_row("run folder", str(outcome.folder))
    console.print()
    console.print(table)


def _evaluation(evaluation: Evaluation) -> Text:
    return Text.assemble(
        (significant(evaluation.mean), "bold"),
        f" ± {significant(evaluation.std)} after {evaluation.timesteps:,} steps",
    )


def _show_next_steps(console: Console, outcome: Outcome) -> None:
    logdir = outcome.folder.parent.parent
    run = str(outcome.folder)
    lines = (
        f"batchppo eval {run}",
        f"batchppo render {run}",
        f"tensorboard --logdir {logdir}",
    )
    console.print("\n[dim]next[/dim]")
    for line in lines:
        console.print(f"  {line}", soft_wrap=True)
