"""Callbacks that end training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from batchppo.callback import BaseCallback

if TYPE_CHECKING:
    from batchppo.evaluation_callback import EvalCallback


class _Stopping(BaseCallback):
    def _say(self, why: str) -> None:
        if self.verbose:
            print(  # noqa: T201 - verbose=1 asks for it
                f"Training ends at {self.num_timesteps:,} timesteps: {why}"
            )


class StopTrainingOnRewardThreshold(_Stopping):
    """Ends training once an evaluation is good enough; belongs to an `EvalCallback`.

    Args:
        reward_threshold: the least best mean return.
        verbose: 0 for silence, 1 for messages.
    """

    def __init__(self, reward_threshold: float, verbose: int = 0) -> None:
        super().__init__(verbose)
        self.reward_threshold = reward_threshold

    def _on_step(self) -> bool:
        best = _evaluation(self).best_mean_reward
        go_on = bool(best < self.reward_threshold)
        if not go_on:
            self._say(f"the mean return {best:.2f} reaches {self.reward_threshold:g}")
        return go_on


class StopTrainingOnNoModelImprovement(_Stopping):
    """Ends training after evaluations without a new best; belongs to an `EvalCallback`.

    Args:
        max_no_improvement_evals: how many evaluations in a row may bring no new best.
        min_evals: how many evaluations come before counting starts.
        verbose: 0 for silence, 1 for messages.
    """

    def __init__(self, max_no_improvement_evals: int, min_evals: int = 0, verbose: int = 0) -> None:
        super().__init__(verbose)
        self.max_no_improvement_evals = max_no_improvement_evals
        self.min_evals = min_evals
        self.no_improvement_evals = 0
        self._last_best = -np.inf

    def _on_step(self) -> bool:
        best = _evaluation(self).best_mean_reward
        if self.n_calls > self.min_evals:
            self.no_improvement_evals = (
                0 if best > self._last_best else self.no_improvement_evals + 1
            )
        self._last_best = best
        go_on = self.no_improvement_evals <= self.max_no_improvement_evals
        if not go_on:
            self._say(f"{self.no_improvement_evals} evaluations without a new best model")
        return go_on


class StopTrainingOnMaxEpisodes(_Stopping):
    """Ends training after a number of episodes per environment.

    Args:
        max_episodes: how many episodes, times the number of environments.
        verbose: 0 for silence, 1 for messages.
    """

    def __init__(self, max_episodes: int, verbose: int = 0) -> None:
        super().__init__(verbose)
        self.max_episodes = max_episodes
        self.n_episodes = 0

    def _on_step(self) -> bool:
        self.n_episodes += int(np.sum(self.locals["dones"]))
        go_on = self.n_episodes < self.max_episodes * self.training_env.num_envs
        if not go_on:
            self._say(f"{self.n_episodes} episodes have ended")
        return go_on


def _evaluation(callback: BaseCallback) -> EvalCallback:
    from batchppo.evaluation_callback import EvalCallback

    if not isinstance(callback.parent, EvalCallback):
        raise TypeError(
            f"{type(callback).__name__} reads an evaluation: give it to an EvalCallback, as "
            f"callback_on_new_best= or callback_after_eval="
        )
    return callback.parent
