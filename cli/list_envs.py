"""`batchppo envs`."""

import click

from .group import new_command
from .options import import_option, json_option


@new_command(name="envs")
@click.argument("pattern", required=False, default="")
@click.option("--all", "every_version", is_flag=True, help="List old versions of an id too.")
@import_option()
@json_option()
def command(pattern: str, every_version: bool, imports: tuple[str, ...], as_json: bool) -> None:
    """List the environments that are registered, and whether an agent can be trained on them.

    PATTERN is a part of the id, upper and lower case alike; without it all are listed.

    \b
    Examples:
      batchppo envs
      batchppo envs cheetah
      batchppo envs --import my_package My
    """
    from .catalog import find_environments, show

    show(find_environments(pattern, every_version, imports), as_json)
