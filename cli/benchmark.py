"""`batchppo benchmark`."""

from typing import Any

import click

from .group import new_command
from .options import COUNT, SECONDS, WORKERS, complete_tasks, environment_options, json_option


@new_command(name="benchmark")
@click.argument("task", metavar="TASK", shell_complete=complete_tasks)
@click.option(
    "--num-envs",
    "env_counts",
    type=COUNT,
    multiple=True,
    default=(8, 32, 128),
    show_default=True,
    help="Try this number of environments. May be repeated.",
)
@click.option(
    "--num-workers",
    "worker_counts",
    type=WORKERS,
    multiple=True,
    help="Try this number of worker processes. May be repeated.  "
    "[default: what `train` does by default, and 0: none]",
)
@environment_options()
@click.option(
    "--seconds",
    metavar="SECONDS",
    type=SECONDS,
    default=3.0,
    show_default=True,
    help="How long to train with each combination, after everything is compiled.",
)
@json_option()
def command(
    task: str,
    env_counts: tuple[int, ...],
    worker_counts: tuple[int, ...],
    seconds: float,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure how fast this machine trains TASK, and with how many environments and workers.

    Each row is a short training. Of its time, so much goes to environments, to acting and to
    updates. Nothing is kept. What is recommended is the smallest number of environments and workers
    that is about as fast as the fastest.

    More environments make longer rollouts unless n_steps is made smaller: what is faster per step
    does not always learn in fewer seconds.

    \b
    Examples:
      batchppo benchmark cartpole
      batchppo benchmark HalfCheetah-v5 --num-envs 16 --num-envs 64 --num-workers 2
    """
    from .plan import TrainOptions, plan_runs
    from .speed import measure_all, show

    (config,) = plan_runs(task, None, None, TrainOptions(seed=0, **options))
    show(task, measure_all(config, env_counts, worker_counts, seconds), as_json)
