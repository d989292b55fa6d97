"""One call of `learn`: how far it goes, who watches it and what it logs."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from batchppo.callback import BaseCallback
from batchppo.episodes import EpisodeStatistics
from batchppo.logger import Logger


@dataclass
class Training:
    """Counters of one call of `learn`.

    Attributes:
        start: environment steps made before.
        goal: environment steps at which it ends.
        callback: who watches; None for nobody.
        logger: where figures go.
        log_interval: iterations between two log entries; None for none.
        iterations: rollouts with their updates made so far.
    """

    start: int
    goal: int
    callback: BaseCallback | None
    logger: Logger
    log_interval: int | None
    iterations: int = 0
    _began: float = field(default_factory=time.perf_counter)

    def progress_remaining(self, timesteps: int) -> float:
        """Returns 1 at environment step 0, 0 at the goal."""
        return 1.0 - timesteps / self.goal

    def next_steps(
        self, timesteps: int, n_steps: int, num_envs: int, valid_share: float | None = None
    ) -> int:
        """Returns how many steps per environment the next rollout has at the most.

        Full rollouts, except that the end is met exactly (to one step of all environments): what is
        left, if it is a little more than one rollout, becomes two equal ones. An update from a
        handful of rows would undo what many have taught.

        Args:
            timesteps: environment steps made so far.
            n_steps: steps of a full rollout.
            num_envs: how many environments there are.
            valid_share: which share of the last rows were transitions; None where all rows are.
                Where some may be resets, also if none was lately, what remains is not known so
                well: the last rollout gets room for more, and ends when the goal is met.
        """
        remaining = math.ceil((self.goal - timesteps) / (num_envs * (valid_share or 1.0)))
        room, few = remaining, 1.5
        if valid_share is not None:
            room, few = math.ceil(1.25 * remaining) + 2, 2.0
        if n_steps < room < few * n_steps:
            return math.ceil(remaining / 2)
        return min(room, n_steps)

    def on_step(self, locals_: dict[str, Any]) -> bool:
        """Tells the callback of a step; returns whether training goes on."""
        if self.callback is None:
            return True
        self.callback.update_locals(locals_)
        return self.callback.on_step()

    def log(
        self,
        timesteps: int,
        episodes: EpisodeStatistics,
        figures: Mapping[str, Any],
        seconds: Mapping[str, float],
    ) -> None:
        """Records the figures of an iteration and writes them where it is time to."""
        self.iterations += 1
        for key, value in {**figures, **episodes.figures()}.items():
            self.logger.record(key, value)
        for part, duration in seconds.items():
            self.logger.record_mean(f"time/{part}", duration)
        if self.log_interval is None or self.iterations % self.log_interval:
            return
        elapsed = max(time.perf_counter() - self._began, 1e-9)
        self.logger.record("time/fps", int((timesteps - self.start) / elapsed))
        self.logger.record("time/iterations", self.iterations)
        self.logger.record("time/time_elapsed", elapsed)
        self.logger.record("time/total_timesteps", timesteps)
        self.logger.dump(timesteps)
