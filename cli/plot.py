"""`batchppo plot`."""

from pathlib import Path

import click

from .group import new_command
from .options import complete_runs, logdir_option


@new_command(name="plot")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, shell_complete=complete_runs)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    default=Path("curves.png"),
    show_default=True,
    help="Picture to write: .png, .svg or .pdf.",
)
@click.option(
    "--metric",
    metavar="KEY",
    default="rollout/ep_rew_mean",
    show_default=True,
    help="Column of progress.csv to draw.",
)
@logdir_option()
def command(runs: tuple[str, ...], output: Path, metric: str, logdir: Path) -> None:
    """Draw learning curves: one line for runs that differ only in their seed.

    RUN is a run folder, or a task: all of its runs. Each task gets a panel. A line is the mean over
    the seeds, and the band around it holds that mean with 95 % confidence (bootstrap).

    \b
    Examples:
      batchppo plot cartpole
      batchppo plot cartpole pendulum --output curves.svg
      batchppo plot pendulum --metric eval/mean_reward
    """
    from .curves import load_curves
    from .drawing import check_picture, draw

    check_picture(output)
    draw(load_curves(runs, logdir, metric), metric, output)
    click.echo(str(output))
