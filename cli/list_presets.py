"""`batchppo presets`."""

import json

import click

from .group import new_command
from .options import json_option
from .presets import PRESETS


@new_command(name="presets")
@json_option()
def command(as_json: bool) -> None:
    """List the presets: tasks with settings that are known to learn them.

    \b
    Examples:
      batchppo presets
      batchppo presets --json
    """
    if as_json:
        documents = {
            name: {**vars(preset), "agent": dict(preset.agent)} for name, preset in PRESETS.items()
        }
        click.echo(json.dumps(documents, indent=2))
        return
    for name, preset in PRESETS.items():
        click.secho(name, bold=True)
        goal = "" if preset.goal is None else f", learned when the mean return is {preset.goal:g}"
        click.echo(f"  {preset.env_id}{goal}")
        settings = {
            "timesteps": f"{preset.total_timesteps:,}",
            "num_envs": preset.num_envs,
            **preset.agent,
        }
        click.echo("  " + ", ".join(f"{key} {value}" for key, value in settings.items()))
