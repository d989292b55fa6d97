"""`batchppo render`."""

from pathlib import Path

import click

from .errors import BadInput
from .group import new_command
from .options import COUNT, FPS, SEED, checkpoint_option, complete_runs, env_option, logdir_option


@new_command(name="render")
@click.argument("run", metavar="RUN", shell_complete=complete_runs)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Video to write, .mp4 or .gif.  [default: video.mp4 in the run folder]",
)
@click.option("--live", is_flag=True, help="Open a window instead of recording a video.")
@click.option("--episodes", type=COUNT, default=1, show_default=True, help="Episodes to record.")
@click.option("--max-steps", type=COUNT, help="End each episode after so many steps.")
@click.option("--fps", type=FPS, help="Frames a second.  [default: the environment's own]")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the environment.")
@checkpoint_option()
@env_option()
@logdir_option()
def command(
    run: str,
    output: Path | None,
    live: bool,
    episodes: int,
    max_steps: int | None,
    fps: int | None,
    seed: int,
    checkpoint: str,
    env_id: str | None,
    logdir: Path,
) -> None:
    """Record a video of a trained agent, or watch it live. A video needs no display.

    RUN is a run folder, a model file, or a task (its newest run).

    \b
    Examples:
      batchppo render cartpole
      batchppo render cartpole --output cartpole.gif --episodes 3
      batchppo render runs/pendulum/2026-01-31_12-00-00/model.zip --output last.mp4
    """
    if live and (output or fps):
        raise BadInput("--live makes no video: it excludes --output and --fps")

    from .recording import record, watch
    from .run_folder import Choice

    choice = Choice(run, logdir, checkpoint, env_id)
    if live:
        watch(choice, episodes, max_steps, seed)
    else:
        record(choice, output, episodes, max_steps, fps, seed)
