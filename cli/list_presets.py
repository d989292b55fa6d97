"""`batchppo presets`."""

import json

import click
from click.shell_completion import CompletionItem

from .errors import BadInput
from .group import new_command
from .options import json_option
from .presets import PRESETS
from .suggestions import did_you_mean


def _complete(
    _context: click.Context, _parameter: click.Parameter, typed: str
) -> list[str | CompletionItem]:
    return [name for name in PRESETS if name.startswith(typed)]


@new_command(name="presets")
@click.argument("preset", metavar="[PRESET]", required=False, shell_complete=_complete)
@json_option()
def command(preset: str | None, as_json: bool) -> None:
    """List the presets, or show all settings of PRESET.

    A preset is a task with settings to train it. Those that end in -2017 have the settings of the
    first batch-ppo.

    \b
    Examples:
      batchppo presets
      batchppo presets cheetah
      batchppo presets --json
    """
    if preset is not None and preset not in PRESETS:
        raise BadInput(f"there is no preset {preset!r}.{did_you_mean(preset, PRESETS)}")
    names = [preset] if preset else list(PRESETS)
    if as_json:
        click.echo(json.dumps({name: PRESETS[name].to_json() for name in names}, indent=2))
        return

    from .preset_table import show_all, show_one

    if preset is None:
        show_all(PRESETS)
    else:
        show_one(preset, PRESETS[preset])
