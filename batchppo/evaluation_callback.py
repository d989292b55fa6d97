"""Evaluation during training, and the best model so far."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from batchppo.callback import BaseCallback, EventCallback, Every
from batchppo.environments import as_vector_env, share_environments
from batchppo.episodes import Episode
from batchppo.evaluation import play_episodes, warn_of_changed_rewards


class EvalCallback(EventCallback):
    """Evaluates the model now and then and keeps the best one as `best_model.zip`.

    Args:
        eval_env: where to evaluate; not the training environment.
        callback_on_new_best: called when a new best mean return is reached.
        callback_after_eval: called after each evaluation.
        n_eval_episodes: episodes per evaluation.
        eval_freq: environment steps between two evaluations.
        log_path: folder for `evaluations.npz` (timesteps, results, ep_lengths, and successes where
            all episodes report `is_success`); None for none.
        best_model_save_path: folder for `best_model.zip`; None for none.
        deterministic: the most likely actions instead of random ones.
        render: whether to render while evaluating.
        verbose: 0 for silence, 1 for a line per evaluation.
        warn: whether to warn of a wrapper that changes the rewards.

    A subclass that wants each evaluation's episodes overrides `_on_evaluation`.

    Attributes:
        best_mean_reward: the best mean return so far.
        last_mean_reward: the mean return of the last evaluation.
    """

    def __init__(
        self,
        eval_env: gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any],
        callback_on_new_best: BaseCallback | None = None,
        callback_after_eval: BaseCallback | None = None,
        n_eval_episodes: int = 5,
        eval_freq: int = 10_000,
        log_path: str | os.PathLike[str] | None = None,
        best_model_save_path: str | os.PathLike[str] | None = None,
        deterministic: bool = True,
        render: bool = False,
        verbose: int = 1,
        warn: bool = True,
    ) -> None:
        super().__init__(callback_after_eval, verbose)
        self.callback_on_new_best = callback_on_new_best
        if callback_on_new_best is not None:
            callback_on_new_best.parent = self
        self.eval_env = as_vector_env(eval_env)
        self.n_eval_episodes = n_eval_episodes
        self.eval_freq = eval_freq
        self.deterministic = deterministic
        self.render = render
        self.warn = warn
        self.log_path = None if log_path is None else Path(log_path)
        self.best_model_save_path = (
            None if best_model_save_path is None else Path(best_model_save_path)
        )
        self.best_mean_reward = -np.inf
        self.last_mean_reward = -np.inf
        self._every = Every(eval_freq)
        self._timesteps: list[int] = []
        self._played: list[list[Episode]] = []

    def update_child_locals(self, locals_: dict[str, Any]) -> None:
        """Passes `locals_` on to both callbacks."""
        super().update_child_locals(locals_)
        if self.callback_on_new_best is not None:
            self.callback_on_new_best.update_locals(locals_)

    def _init_callback(self) -> None:
        if share_environments(self.eval_env, self.training_env):
            raise ValueError("eval_env is the training environment; make another one like it")
        if self.callback_on_new_best is not None:
            self.callback_on_new_best.init_callback(self.model)

    def _on_training_start(self) -> None:
        self._every.start(self.num_timesteps)
        super()._on_training_start()

    def _on_step(self) -> bool:
        return self.evaluate() if self._every.due(self.num_timesteps) else True

    def evaluate(self) -> bool:
        """Evaluates now; returns whether training goes on."""
        if self.warn:
            warn_of_changed_rewards(self.eval_env)
        played = play_episodes(
            self.model, self.eval_env, self.n_eval_episodes, self.deterministic, self.render
        )
        returns = [episode.return_ for episode in played]
        lengths = [episode.length for episode in played]
        successes = [episode.success for episode in played if episode.success is not None]
        self._keep(played)
        self._on_evaluation(returns, lengths)
        self.last_mean_reward = float(np.mean(returns))
        self.logger.record("eval/mean_reward", self.last_mean_reward)
        self.logger.record("eval/mean_ep_length", float(np.mean(lengths)))
        if successes:
            self.logger.record("eval/success_rate", float(np.mean(successes)))
        if self.verbose:
            self._print(returns)
        go_on = self._on_new_best() if self.last_mean_reward > self.best_mean_reward else True
        return self._on_event() and go_on

    def _on_evaluation(self, returns: list[float], lengths: list[int]) -> None:
        """Called after every evaluation: a hook for subclasses; does nothing by itself.

        `last_mean_reward` and `best_mean_reward` are still those of the evaluations before, and
        `best_model.zip` is not written yet.

        Args:
            returns: the episodes' returns.
            lengths: the episodes' lengths in steps.
        """

    def _on_new_best(self) -> bool:
        self.best_mean_reward = self.last_mean_reward
        if self.best_model_save_path is not None:
            self.model.save(self.best_model_save_path / "best_model.zip")
        return (
            self.callback_on_new_best.on_step() if self.callback_on_new_best is not None else True
        )

    def _keep(self, played: list[Episode]) -> None:
        self._timesteps.append(self.num_timesteps)
        self._played.append(played)
        if self.log_path is None:
            return
        columns: dict[str, Any] = {
            "timesteps": self._timesteps,
            "results": [[episode.return_ for episode in row] for row in self._played],
            "ep_lengths": [[episode.length for episode in row] for row in self._played],
        }
        successes = [[episode.success for episode in row] for row in self._played]
        if None not in (success for row in successes for success in row):
            columns["successes"] = successes
        self.log_path.mkdir(parents=True, exist_ok=True)
        np.savez(self.log_path / "evaluations.npz", **columns)

    def _print(self, returns: list[float]) -> None:
        print(  # noqa: T201 - verbose=1 asks for it
            f"Eval num_timesteps={self.num_timesteps}, "
            f"episode_reward={np.mean(returns):.2f} +/- {np.std(returns):.2f}"
        )
