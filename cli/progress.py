"""How training goes, while it goes: a bar on a terminal, plain lines in a log, or nothing."""

import time
from collections import deque
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from .formatting import duration, mean_and_std, significant
from .outcome import Evaluation

_WIDE, _NARROW = 90, 60
_LINE_EVERY_FRACTION = 0.05
_SPEED_OVER_SECONDS = 15.0
_LINE_EVERY_SECONDS = (5.0, 60.0)  # at first, and later


class Display(Protocol):
    """Shows the progress of a training; a context that lasts as long as the training."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def advance(self, timesteps: int, mean_return: float | None) -> None:
        """Show how many timesteps are done, and the mean return of the latest episodes."""

    def evaluated(self, evaluation: Evaluation, is_best: bool) -> None:
        """Show the result of an evaluation."""


def make_display(console: Console, label: str, total: int, done: int, kind: str) -> Display:
    """Return the display that suits the console.

    Args:
        console: Where to show the progress.
        label: Name of what is trained.
        total: Timesteps at the end of the training.
        done: Timesteps at its beginning.
        kind: "auto" (a bar on a terminal, lines elsewhere), "lines" or "none".
    """
    if kind == "none":
        return SilentDisplay()
    if kind == "auto" and console.is_terminal:
        return BarDisplay(console, label, total, done)
    return LineDisplay(console, total, done)


class SilentDisplay:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def advance(self, timesteps: int, mean_return: float | None) -> None:
        """Show nothing."""

    def evaluated(self, evaluation: Evaluation, is_best: bool) -> None:
        """Show nothing."""


class LineDisplay:
    """Prints a line now and then, for logs: twenty in a training, and at least one a minute."""

    def __init__(self, console: Console, total: int, done: int) -> None:
        self._console = console
        self._total = total
        self._shown = done
        self._start = time.monotonic()
        self._due_at = self._start + _LINE_EVERY_SECONDS[0]
        self._recent = deque([(self._start, done)])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def advance(self, timesteps: int, mean_return: float | None) -> None:
        """Print a line, unless the last one is not long ago."""
        now = time.monotonic()
        speed = self._speed(now, timesteps)
        if timesteps - self._shown < _LINE_EVERY_FRACTION * self._total and now < self._due_at:
            return
        self._shown = timesteps
        least, most = _LINE_EVERY_SECONDS
        self._due_at = now + min(max(now - self._start, least), most)
        left = duration(max(self._total - timesteps, 0) / speed)
        shown = "-" if mean_return is None else significant(mean_return)
        self._print(
            f"{_steps_of(timesteps, self._total)}  {speed:,.0f} steps/s  "
            f"mean return {shown}  {left} left"
        )

    def _speed(self, now: float, timesteps: int) -> float:
        """Return the steps per second of the last while."""
        self._recent.append((now, timesteps))
        while len(self._recent) > 2 and now - self._recent[0][0] > _SPEED_OVER_SECONDS:
            self._recent.popleft()
        then, steps = self._recent[0]
        return max(timesteps - steps, 1) / max(now - then, 1e-9)

    def evaluated(self, evaluation: Evaluation, is_best: bool) -> None:
        """Print the result of an evaluation."""
        steps = _steps_of(evaluation.timesteps, self._total)
        self._print(f"{steps}  {_describe(evaluation, is_best)}")

    def _print(self, line: str) -> None:
        self._console.print(line, soft_wrap=True)


class BarDisplay:
    """A bar that is drawn anew several times a second; evaluations scroll by above it."""

    def __init__(self, console: Console, label: str, total: int, done: int) -> None:
        self._console = console
        self._progress = Progress(
            *_columns(console.width), console=console, refresh_per_second=5, expand=False
        )
        self._task = self._progress.add_task(label, total=total, completed=done, mean_return="-")
        self._total = total

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def advance(self, timesteps: int, mean_return: float | None) -> None:
        """Move the bar."""
        shown = "-" if mean_return is None else significant(mean_return)
        self._progress.update(self._task, completed=timesteps, mean_return=shown)

    def evaluated(self, evaluation: Evaluation, is_best: bool) -> None:
        """Print the result of an evaluation above the bar."""
        width = len(f"{self._total:,}")
        self._console.print(
            Text.assemble(
                (f"{evaluation.timesteps:>{width},} steps", "dim"),
                f"  {_describe(evaluation, is_best)}",
            )
        )


class _Steps(ProgressColumn):
    def __init__(self, with_unit: bool) -> None:
        super().__init__()
        self._with_unit = with_unit

    def render(self, task: Task) -> Text:
        text = _steps_of(int(task.completed), int(task.total or 0))
        text = text if self._with_unit else text.removesuffix(" steps")
        return Text(text, style="progress.download")


class _Speed(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(" - steps/s" if speed is None else f" {speed:,.0f} steps/s", style="cyan")


class _Left(ProgressColumn):
    def render(self, task: Task) -> Text:
        seconds = task.time_remaining
        is_known = seconds is not None and not task.finished
        return Text(f" {duration(seconds or 0)} left" if is_known else "", style="dim")


def _columns(width: int) -> list[ProgressColumn]:
    """Return as many columns as a terminal of this width has room for."""
    columns: list[ProgressColumn] = [
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=max(10, min(30, width - 80))),
        _Steps(with_unit=width >= _NARROW),
    ]
    mean_return = TextColumn(" return [green]{task.fields[mean_return]}")
    if width >= _NARROW:
        columns.append(mean_return)
    if width >= _WIDE:
        columns.insert(3, _Speed())
    if width >= _WIDE - 15:
        columns.append(_Left())
    return columns


def _steps_of(timesteps: int, total: int) -> str:
    return f"{timesteps:>{len(f'{total:,}')},}/{total:,} steps"


def _describe(evaluation: Evaluation, is_best: bool) -> str:
    best = ", the best so far" if is_best else ""
    return f"evaluation: {mean_and_std(evaluation.mean, evaluation.std)}{best}"
