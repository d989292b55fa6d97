"""`batchppo info`."""

from pathlib import Path

import click

from .group import new_command
from .options import checkpoint_option, complete_runs, json_option, logdir_option


@new_command(name="info")
@click.argument("run", metavar="RUN", shell_complete=complete_runs)
@checkpoint_option()
@logdir_option()
@json_option()
def command(run: str, checkpoint: str, logdir: Path, as_json: bool) -> None:
    """Tell what is in a model file or a run: spaces, steps, score, settings, versions.

    RUN is a run folder, a model file, or a task (its newest run).

    \b
    Examples:
      batchppo info cartpole
      batchppo info agent.zip --json
    """
    from .description import describe, show
    from .run_folder import Choice

    show(describe(Choice(run, logdir, checkpoint)), as_json)
