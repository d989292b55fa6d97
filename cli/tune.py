"""`batchppo tune`."""

from pathlib import Path
from typing import Any

import click

from .group import new_command
from .options import (
    COUNT,
    SEED,
    complete_tasks,
    environment_options,
    json_option,
    logdir_option,
)


@new_command(name="tune")
@click.argument("task", metavar="TASK", shell_complete=complete_tasks)
@click.option("--trials", type=COUNT, default=50, show_default=True, help="Trials in all.")
@click.option(
    "--timesteps", type=COUNT, help="Environment steps of a trial.  [default: the task's]"
)
@click.option("--num-envs", type=COUNT, help="Environments in parallel.  [default: the task's]")
@click.option("--num-workers", type=COUNT, help="Worker processes.  [default: one per core]")
@click.option(
    "--eval-episodes",
    type=COUNT,
    default=20,
    show_default=True,
    help="Episodes of an evaluation. Ten evaluations are made in a trial.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the search.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Keep a hyperparameter at a value instead of searching for it: gamma=0.98. May be "
    "repeated.",
)
@environment_options()
@logdir_option()
@json_option()
def command(task: str, trials: int, seed: int, logdir: Path, as_json: bool, **options: Any) -> None:
    """Search for hyperparameters that learn TASK, with Optuna (extra: tune).

    Each trial is a training; one that does worse than the others did at that point is ended early.
    What counts is the mean return of its last evaluation. The study is kept in LOGDIR/TASK/tune:
    the same command, with as many or more --trials, goes on with it. best.toml there holds the
    best settings so far, for train --config.

    The best of many noisy trials looks better than it is: train with several --seeds before you
    believe it.

    \b
    Examples:
      batchppo tune CartPole-v1 --trials 30 --timesteps 50000
      batchppo tune pendulum --set gamma=0.9 --env-kwarg g=9.81
      batchppo train --config runs/CartPole-v1/tune/best.toml --seeds 0-4
    """
    from .extras import require_extra

    require_extra("tune", "searching for hyperparameters")

    from .plan import TrainOptions, plan_runs
    from .search import Search, search
    from .settings import parse_settings

    given = TrainOptions(seed=seed, **options)
    (config,) = plan_runs(task, None, None, given)
    fixed = parse_settings(given.settings)
    search(Search(config, fixed, logdir / config.task / "tune"), trials, as_json)
