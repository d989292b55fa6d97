"""`batchppo tune`."""

from pathlib import Path

import click

from .group import new_command
from .options import COUNT, SEED, complete_tasks, import_option, json_option, logdir_option


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
@import_option()
@logdir_option()
@json_option()
def command(
    task: str,
    trials: int,
    timesteps: int | None,
    num_envs: int | None,
    num_workers: int | None,
    eval_episodes: int,
    seed: int,
    imports: tuple[str, ...],
    logdir: Path,
    as_json: bool,
) -> None:
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
      batchppo train --config runs/CartPole-v1/tune/best.toml --seeds 0-4
    """
    from .extras import require_extra

    require_extra("tune", "searching for hyperparameters")

    from .plan import TrainOptions, plan_runs
    from .search import search

    options = TrainOptions(
        timesteps=timesteps,
        num_envs=num_envs,
        num_workers=num_workers,
        eval_episodes=eval_episodes,
        seed=seed,
        imports=imports,
    )
    (config,) = plan_runs(task, None, None, options)
    search(config, logdir / config.task / "tune", trials, as_json)
