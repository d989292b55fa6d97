"""`batchppo eval`."""

from pathlib import Path

import click

from .group import new_command
from .options import (
    COUNT,
    SEED,
    checkpoint_option,
    complete_runs,
    env_option,
    json_option,
    logdir_option,
)


@new_command(name="eval")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, shell_complete=complete_runs)
@click.option("--episodes", type=COUNT, default=20, show_default=True, help="Episodes to play.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the environments.")
@click.option(
    "--stochastic",
    is_flag=True,
    help="Measure sampled actions too, beside the most likely ones.",
)
@checkpoint_option()
@env_option()
@logdir_option()
@json_option()
def command(
    runs: tuple[str, ...],
    episodes: int,
    seed: int,
    stochastic: bool,
    checkpoint: str,
    env_id: str | None,
    logdir: Path,
    as_json: bool,
) -> None:
    """Measure how well trained agents do.

    RUN is a run folder, a model file, or a task (its newest run). Several RUNs are compared
    in one table, on the same seeds.

    The interval holds the mean return with 95 % confidence (bootstrap over the episodes).

    \b
    Examples:
      batchppo eval cartpole
      batchppo eval runs/cartpole/2026-01-31_12-00-00 --episodes 100
      batchppo eval cartpole pendulum --stochastic --json
    """
    from .evaluation import evaluate, show
    from .run_folder import Choice

    choices = [Choice(run, logdir, checkpoint, env_id) for run in runs]
    show([score for c in choices for score in evaluate(c, episodes, seed, stochastic)], as_json)
