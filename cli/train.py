"""`batchppo train`."""

from pathlib import Path
from typing import Any

import click

from .group import is_debugging, new_command
from .options import (
    COUNT,
    RETURN,
    SEED,
    WORKERS,
    complete_runs,
    complete_tasks,
    environment_options,
    json_option,
    logdir_option,
)


@new_command(name="train")
@click.argument("task", metavar="[TASK]", required=False, shell_complete=complete_tasks)
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
    type=WORKERS,
    help="Worker processes that the environments are spread over; 0 steps them in this one.  "
    "[default: one process per core]",
)
@click.option(
    "--seed",
    type=SEED,
    help="Seed of environments, network and actions.  [default: drawn, and kept in config.json]",
)
@click.option(
    "--seeds",
    metavar="LIST",
    help="Train once with each of these seeds, one after the other: 0-4, or 1,3,5.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a hyperparameter: gamma=0.98, learning_rate=linear:3e-4, target_kl=none, "
    "policy_kwargs.net_arch=[64,64]. May be repeated.",
)
@environment_options()
@click.option(
    "--eval-every",
    type=COUNT,
    help="Environment steps between evaluations.  [default: a tenth of --timesteps]",
)
@click.option(
    "--eval-episodes",
    type=COUNT,
    help="Episodes of an evaluation, with the most likely actions.  [default: 10]",
)
@click.option(
    "--stop-at",
    type=RETURN,
    metavar="RETURN",
    help="End as soon as an evaluation has this mean return.",
)
@click.option(
    "--checkpoint-every",
    type=COUNT,
    help="Keep the agent every N environment steps, in the folder checkpoints.",
)
@click.option(
    "--histograms",
    is_flag=True,
    default=None,
    help="Give TensorBoard histograms too: actions, losses, gradients, weights, ...",
)
@click.option(
    "--resume",
    metavar="RUN",
    shell_complete=complete_runs,
    help="Go on with a run where its model.zip is, or with one of its checkpoints. --timesteps is "
    "the new total. Schedules run over that total: with a greater one, a falling learning rate "
    "jumps up again to where it is at that fraction of the new total.",
)
@click.option(
    "--config",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Take the settings from a file: TOML, or the config.json of a run. Other options come "
    "before what it says.",
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
    task: str | None,
    seeds: str | None,
    resume: str | None,
    file: Path | None,
    logdir: Path,
    progress: bool,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Train an agent on TASK: a preset, or the id of any Gymnasium environment.

    `batchppo presets` lists the presets, which have settings of their own.

    The run is kept in LOGDIR/TASK/TIME: the settings (config.json), the agent at the end
    (model.zip) and at its best evaluation (best_model.zip), progress.csv and TensorBoard logs.
    Ctrl-C ends the training early and saves the agent as it is.

    \b
    Examples:
      batchppo train cartpole
      batchppo train HalfCheetah-v5 --timesteps 2e6 --num-envs 32 --seeds 0-2
      batchppo train pendulum --set gamma=0.95 --set learning_rate=linear:1e-3
      batchppo train my_package:MyTask-v0 --env-kwarg size=5
      batchppo train --resume pendulum --timesteps 400000
    """
    from .plan import TrainOptions
    from .process import silent_workers
    from .report import show_outcome, show_series
    from .request import Request
    from .series import run_series
    from .training import run_training

    request = Request(task=task, file=file, seeds=seeds, resume=resume)
    given = TrainOptions(**options)
    kind = "auto" if progress and not quiet else "none"
    with silent_workers(is_debugging()):
        if seeds is None:
            outcome = run_training(request.run(given, logdir), kind)
            show_outcome(outcome, as_json, quiet)
            code = outcome.exit_code
        else:
            series = run_series(request.configs(given), logdir, kind, quiet, is_debugging())
            show_series(series, as_json, quiet)
            code = series.exit_code
    if code:
        raise click.exceptions.Exit(code)
