"""A progress bar for training."""

from __future__ import annotations

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from batchppo.callback import BaseCallback


class ProgressBarCallback(BaseCallback):
    """Shows steps, speed, mean return and the time left."""

    _bar: Progress
    _task: TaskID

    def _on_training_start(self) -> None:
        self._bar = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("steps  return {task.fields[mean]}"),
            TimeElapsedColumn(),
            TextColumn("<"),
            TimeRemainingColumn(),
        )
        total = self.locals["total_timesteps"]
        self._task = self._bar.add_task("", total=total, completed=self.num_timesteps, mean="-")
        self._bar.start()

    def _on_step(self) -> bool:
        self._bar.update(self._task, completed=self.num_timesteps)
        return True

    def _on_rollout_end(self) -> None:
        returns = self.model.episodes.returns
        if returns:
            self._bar.update(self._task, mean=f"{sum(returns) / len(returns):.1f}")

    def _on_training_end(self) -> None:
        self._bar.stop()
