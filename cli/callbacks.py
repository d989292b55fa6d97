"""Callbacks that connect a training with what is shown and kept of it."""

from typing import Any

import numpy as np

from batchppo.callbacks import BaseCallback, EvalCallback

from .outcome import Evaluation
from .progress import Display
from .run_folder import RunFolder


class ShowProgress(BaseCallback):
    """Moves the progress display after each rollout."""

    def __init__(self, display: Display) -> None:
        super().__init__()
        self._display = display

    def _on_rollout_end(self) -> None:
        returns = self.model.episodes.returns
        self._display.advance(self.num_timesteps, float(np.mean(returns)) if returns else None)


class Evaluate(EvalCallback):
    """Evaluates now and then; keeps the best agent, the newest one, and all results.

    The last evaluation is made by `finish`, of the agent as it is in the end.

    Args:
        env: Where to evaluate.
        every: Environment steps between two evaluations.
        episodes: Episodes of one evaluation.
        total_timesteps: Environment steps at the end of the training.
        folder: Where the models go.
        display: Where results are shown.

    Attributes:
        results: The results so far.
    """

    def __init__(
        self,
        env: Any,
        every: int,
        episodes: int,
        total_timesteps: int,
        folder: RunFolder,
        display: Display,
    ) -> None:
        super().__init__(
            env,
            n_eval_episodes=episodes,
            eval_freq=every,
            log_path=folder.path,
            best_model_save_path=folder.path,
            verbose=0,
        )
        self.results: list[Evaluation] = []
        self._until = total_timesteps - every // 2
        self._folder = folder
        self._display = display

    def finish(self) -> None:
        """Evaluate the agent at the end of the training, and log the result."""
        self.num_timesteps = self.model.num_timesteps
        self.evaluate()
        self.logger.dump(self.num_timesteps)

    def _on_step(self) -> bool:
        # Shortly before the end there is none: the one at the end follows at once.
        return super()._on_step() if self.num_timesteps < self._until else True

    def _keep(self, returns: list[float], lengths: list[int]) -> None:
        super()._keep(returns, lengths)
        mean = float(np.mean(returns))
        self.results.append(Evaluation(self.num_timesteps, mean, float(np.std(returns))))
        self._display.evaluated(self.results[-1], is_best=mean > self.best_mean_reward)
        self.model.save(self._folder.model)
