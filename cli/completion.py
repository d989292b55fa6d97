"""`batchppo completion`."""

import click
from click.shell_completion import get_completion_class

from .group import batchppo, new_command


@new_command(name="completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script that completes commands, options, tasks and runs in your shell.

    \b
    Examples:
      eval "$(batchppo completion bash)"        in ~/.bashrc
      eval "$(batchppo completion zsh)"         in ~/.zshrc, after compinit
      batchppo completion fish > ~/.config/fish/completions/batchppo.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise ValueError(f"no completion is known for {shell}")
    click.echo(kind(batchppo, {}, "batchppo", "_BATCHPPO_COMPLETE").source())
