"""The command `batchppo`: its commands, and how all of them end."""

import importlib
import importlib.metadata
import traceback
from collections.abc import Callable
from typing import Any

import click

from .errors import FAILED, BadInput, CommandFailed, colour, describe
from .process import exit_code, leave, terminate_like_interrupt
from .suggestions import did_you_mean

_DEBUG = "batchppo_cli.debug"

# Name -> the module whose attribute `command` it is, and what it is for.
_COMMANDS = {
    "train": ("train", "Train an agent on a task."),
    "eval": ("eval", "Measure how well trained agents do."),
    "render": ("render", "Record a video of a trained agent, or watch it."),
    "plot": ("plot", "Draw the learning curves of runs."),
    "info": ("info", "Tell what is in a model file or a run."),
    "presets": ("list_presets", "List the presets and their settings."),
    "envs": ("list_envs", "List the environments that are registered."),
    "tune": ("tune", "Search for hyperparameters."),
    "benchmark": ("benchmark", "Measure how fast this machine trains."),
    "completion": ("completion", "Print the script that completes commands in your shell."),
}

_HELP = """Train, evaluate and watch agents that learn by proximal policy optimization.

\b
  batchppo train cartpole     train on a preset, or on any Gymnasium id
  batchppo eval cartpole      measure the newest run of that task
  batchppo render cartpole    record a video of it

Every run is kept in a folder of its own, runs/TASK/TIME.
"""


def is_debugging() -> bool:
    """Return whether the command that is running was given --debug."""
    return bool(click.get_current_context().meta.get(_DEBUG))


def _remember_debug(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[_DEBUG] = value


class Command(click.Command):
    """A command whose errors are one line each, and which has the option --debug."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(
            click.Option(
                ["--debug"],
                is_flag=True,
                expose_value=False,
                callback=_remember_debug,
                help="Show the whole traceback of an error.",
            )
        )

    def invoke(self, context: click.Context) -> Any:
        """Run the command; turn its exceptions into a line and an exit code."""
        try:
            with terminate_like_interrupt():
                return super().invoke(context)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt as interrupt:
            click.echo("Interrupted.", err=True)
            raise click.exceptions.Exit(exit_code(interrupt)) from None
        except Exception as error:
            if context.meta.get(_DEBUG):
                raise
            raise CommandFailed(describe(error)) from error


class LazyGroup(click.Group):
    """A group that imports a command's module only when that command is asked for."""

    def list_commands(self, context: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the commands in the order in which somebody new needs them."""
        return list(_COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        """Import the command `name`."""
        if name not in _COMMANDS:
            return None
        command = importlib.import_module(f".{_COMMANDS[name][0]}", __package__).command
        if not isinstance(command, click.Command):
            raise TypeError(f"{name}.command is no click command")
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first argument names, or say which it may have meant."""
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            hint = did_you_mean(args[0], _COMMANDS) or f" There are: {', '.join(_COMMANDS)}."
            raise BadInput(f"there is no command {args[0]!r}.{hint}")
        return super().resolve_command(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, purpose) for name, (_, purpose) in _COMMANDS.items()])


def new_command(**attributes: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator that makes a function a command of the group."""
    return click.command(
        cls=Command, context_settings={"help_option_names": ["-h", "--help"]}, **attributes
    )


@click.group(
    name="batchppo",
    cls=LazyGroup,
    help=_HELP,
    epilog="batchppo COMMAND --help tells the options of a command, with examples.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(importlib.metadata.version("batchppo"), prog_name="batchppo")
def batchppo() -> None:
    """Hold the commands."""


def main() -> None:
    """Run the command line: the entry point of the console script."""
    try:
        batchppo(prog_name="batchppo", color=colour())
    except SystemExit as end:
        leave(end.code if isinstance(end.code, int) else 0)
    except Exception:  # noqa: BLE001 - with --debug, every error gets here
        traceback.print_exc()
        leave(FAILED)
