"""Callbacks that connect a training with what is shown and kept of it."""

from pathlib import Path
from typing import Any

import numpy as np

from batchppo.callbacks import BaseCallback, EvalCallback

from .outcome import Evaluation, best_of, save_evaluations
from .progress import Display
from .run import Run
from .run_config import RunConfig


class ShowProgress(BaseCallback):
    """Moves the progress display after each rollout."""

    def __init__(self, display: Display) -> None:
        super().__init__()
        self._display = display

    def _on_rollout_end(self) -> None:
        returns = self.model.episodes.returns
        self._display.advance(self.num_timesteps, float(np.mean(returns)) if returns else None)


class EvaluateToTheEnd(EvalCallback):
    """Evaluates now and then, and once more, by `finish`, the agent as it is in the end.

    Args:
        env: Where to evaluate.
        config: When to evaluate, and when a mean return is good enough to stop.
        folder: Where `best_model.zip` goes; None for nowhere.
    """

    def __init__(self, env: Any, config: RunConfig, folder: Path | None = None) -> None:
        super().__init__(
            env,
            n_eval_episodes=config.eval_episodes,
            eval_freq=config.eval_every,
            best_model_save_path=folder,
            verbose=0,
        )
        self._evaluated_at = -1
        self._until = config.total_timesteps - config.eval_every // 2
        self._stop_at = config.stop_at

    def finish(self) -> None:
        """Evaluate the agent at the end of the training, and log what was not logged yet.

        There is no evaluation if the last one was of this very agent: it ended the training.
        """
        if self._evaluated_at != self.model.num_timesteps:
            self.num_timesteps = self.model.num_timesteps
            self.evaluate()
        if self.logger.name_to_value:
            self.logger.record("time/total_timesteps", self.num_timesteps)
            self.logger.dump(self.num_timesteps)

    def evaluate(self) -> bool:
        """Evaluate now; return False if the mean return is good enough to stop."""
        go_on = super().evaluate()
        self._evaluated_at = self.num_timesteps
        return go_on and (self._stop_at is None or self.last_mean_reward < self._stop_at)

    def _on_step(self) -> bool:
        # Shortly before the end there is none: the one at the end follows at once.
        return super()._on_step() if self.num_timesteps < self._until else True


class Evaluate(EvaluateToTheEnd):
    """Keeps the best agent, the newest one, and the results of all evaluations.

    Args:
        env: Where to evaluate.
        run: Where models and results go, and the results of the run before it was resumed.
        display: Where results are shown.

    Attributes:
        results: The results so far.
    """

    def __init__(self, env: Any, run: Run, display: Display) -> None:
        super().__init__(env, run.config, run.folder.path)
        self.results = list(run.evaluations)
        best = best_of(self.results)
        if best is not None:
            self.best_mean_reward = best.mean
        self._folder = run.folder
        self._display = display

    def _on_evaluation(self, returns: list[float], lengths: list[int]) -> None:
        result = Evaluation(self.num_timesteps, tuple(returns), tuple(lengths))
        self._display.evaluated(result, is_best=result.mean > self.best_mean_reward)
        self.results.append(result)
        self.model.save(self._folder.model)
        save_evaluations(self._folder.evaluations, self.results)
