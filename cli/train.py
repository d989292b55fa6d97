"""`batchppo train`."""

from pathlib import Path

import click

from .group import new_command
from .options import COUNT, SEED, json_option, logdir_option


@new_command(name="train")
@click.argument("task", metavar="TASK")
@click.option(
    "--timesteps",
    type=COUNT,
    help="Environment steps to train for, over all environments together.  "
    "[default: the preset's; 1,000,000 for an id]",
)
@click.option(
    "--num-envs",
    type=COUNT,
    help="Environments that step in parallel.  [default: the preset's; 8 for an id]",
)
@click.option(
    "--num-workers",
    type=COUNT,
    help="Processes that the environments are spread over.  [default: one per core]",
)
@click.option(
    "--seed",
    type=SEED,
    help="Seed of environments, network and actions.  [default: drawn, and kept in config.json]",
)
@click.option(
    "--eval-every",
    type=COUNT,
    help="Environment steps between evaluations.  [default: a tenth of --timesteps]",
)
@click.option(
    "--eval-episodes",
    type=COUNT,
    default=10,
    show_default=True,
    help="Episodes of an evaluation, with the most likely actions.",
)
@logdir_option()
@click.option(
    "--progress/--no-progress",
    default=True,
    help="Show a progress bar (on a terminal) or lines (in a log).  [default: progress]",
)
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@json_option()
def command(
    task: str,
    timesteps: int | None,
    num_envs: int | None,
    num_workers: int | None,
    seed: int | None,
    eval_every: int | None,
    eval_episodes: int,
    logdir: Path,
    progress: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Train an agent on TASK: a preset, or the id of any Gymnasium environment.

    Presets are cartpole and pendulum: settings that are known to learn these tasks.

    The run is kept in LOGDIR/TASK/TIME: the settings (config.json), the agent at the end
    (model.zip) and at its best evaluation (best_model.zip), progress.csv and TensorBoard logs.
    Ctrl-C ends the training early and saves the agent as it is.

    \b
    Examples:
      batchppo train cartpole
      batchppo train HalfCheetah-v5 --timesteps 2000000 --num-envs 32 --seed 1
      batchppo train my_package:MyTask-v0 --logdir experiments
    """
    from .process import silence_tensorflow

    silence_tensorflow()

    from .plan import plan_run
    from .report import show_outcome
    from .training import run_training

    config = plan_run(
        task,
        timesteps=timesteps,
        num_envs=num_envs,
        num_workers=num_workers,
        seed=seed,
        eval_every=eval_every,
        eval_episodes=eval_episodes,
    )
    outcome = run_training(config, logdir, "auto" if progress and not quiet else "none")
    show_outcome(outcome, as_json, quiet)
    if outcome.exit_code:
        raise click.exceptions.Exit(outcome.exit_code)
