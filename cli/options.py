"""Options that several commands share."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

LARGEST_SEED = 2**32 - 1


class WholeNumber(click.ParamType[int]):
    """A whole number between bounds, which may be written 100000, 100_000 or 1e5."""

    name = "n"

    def __init__(self, least: int, most: int | None = None) -> None:
        self._least = least
        self._most = most

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> int:
        """Return the number that the command line means."""
        try:
            number = value if isinstance(value, int) else _read_whole(value)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not a whole number.", param, context)
        if number < self._least or (self._most is not None and number > self._most):
            bounds = f"at least {self._least}"
            if self._most is not None and number > self._most:
                bounds = f"at most {self._most}"
            self.fail(f"{value} is out of range: it must be {bounds}.", param, context)
        return number


class FiniteNumber(click.ParamType[float]):
    """A number that is neither infinite nor NaN, which no comparison would ever stop.

    Args:
        above: What it must be greater than; None for any number.
        most: What it must not be greater than.
    """

    name = "number"

    def __init__(self, above: float | None = None, most: float | None = None) -> None:
        self._above = above
        self._most = most

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> float:
        """Return the number that the command line means."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a number.", param, context)
        if self._above is not None and number <= self._above:
            self.fail(f"{value} is out of range: it must be above {self._above:g}.", param, context)
        if self._most is not None and number > self._most:
            self.fail(
                f"{value} is out of range: it must be at most {self._most:g}.", param, context
            )
        return number


def _read_whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if number != int(number):
            raise
        return int(number)


COUNT = WholeNumber(least=1, most=10**15)
WORKERS = WholeNumber(least=0, most=10**15)
FPS = WholeNumber(least=1, most=240)
SEED = WholeNumber(least=0, most=LARGEST_SEED)
RETURN = FiniteNumber()
SECONDS = FiniteNumber(above=0.0, most=3600.0)


def complete_tasks(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Return the presets and the ids that begin with what was typed, for the shell."""
    import gymnasium

    from .presets import PRESETS

    return [name for name in [*PRESETS, *gymnasium.registry] if name.startswith(incomplete)]


def complete_runs(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the tasks that have runs, or else files and folders, for the shell."""
    logdir = Path(context.params.get("logdir") or "runs")
    tasks = sorted(path.name for path in logdir.glob(f"{incomplete}*") if path.is_dir())
    return [CompletionItem(task) for task in tasks] or [CompletionItem(incomplete, type="file")]


def logdir_option() -> Decorator:
    """Return the option --logdir: where run folders are."""
    return click.option(
        "--logdir",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("runs"),
        show_default=True,
        help="Folder that holds the run folders.",
    )


def json_option() -> Decorator:
    """Return the option --json: results for programs instead of people."""
    return click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def import_option() -> Decorator:
    """Return the option --import: modules that register environments."""
    return click.option(
        "--import",
        "imports",
        multiple=True,
        metavar="MODULE",
        help="Import a module that registers environments. May be repeated.",
    )


def environment_options() -> Decorator:
    """Return the options --env-kwarg, --wrapper and --import: how to make the environment."""
    env_kwarg = click.option(
        "--env-kwarg",
        "env_kwargs",
        multiple=True,
        metavar="KEY=VALUE",
        help="Argument of the environment. May be repeated.",
    )
    wrapper = click.option(
        "--wrapper",
        "wrappers",
        multiple=True,
        metavar="WRAPPER",
        help="Wrap each environment: NAME of gymnasium.wrappers or batchgym, or MODULE:NAME, with "
        "arguments as in 'TimeLimit(max_episode_steps=200)'. May be repeated; the first is the "
        "innermost.",
    )

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        return env_kwarg(wrapper(import_option()(function)))

    return decorate


def env_option() -> Decorator:
    """Return the option --env: the environment for a model whose run is not known."""
    return click.option(
        "--env",
        "env_id",
        metavar="ID",
        help="Use this environment instead of the one that the model was trained on. Needed for a "
        "model file that is not in a run folder.",
    )


def checkpoint_option() -> Decorator:
    """Return the option --checkpoint: which model of a run."""
    return click.option(
        "--checkpoint",
        metavar="[best|last|STEPS]",
        default="best",
        show_default=True,
        help="Which model of a run: that of the best evaluation, the last one, or a checkpoint.",
    )
