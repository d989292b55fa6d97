"""How good a policy is: returns of whole episodes, raw rewards, frozen statistics."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv, VectorWrapper
from numpy.typing import NDArray

from batchppo.environments import as_vector_env
from batchppo.episodes import Episode, EpisodeStatistics
from batchppo.transitions import Stepper


class Predictor(Protocol):
    """What can be evaluated: an agent, a loaded policy, or anything of your own."""

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Any, Any]:
        """Returns the actions for a batch of observations, and the state for the next call."""


EvaluationCallback = Callable[[dict[str, Any], dict[str, Any]], Any]


def evaluate_policy(
    model: Predictor,
    env: gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any],
    n_eval_episodes: int = 10,
    deterministic: bool = True,
    render: bool = False,
    callback: EvaluationCallback | None = None,
    reward_threshold: float | None = None,
    return_episode_rewards: bool = False,
    warn: bool = True,
    *,
    seed: int | None = None,
) -> Any:
    """Plays whole episodes and returns their mean return, without changing the model.

    Each of N environments plays its share of the episodes, known beforehand: taking the first
    episodes to end would favour short ones.

    Args:
        model: what acts.
        env: one environment, or a vector environment in any autoreset mode.
        n_eval_episodes: how many episodes in all.
        deterministic: the most likely actions instead of random ones.
        render: whether to call `env.render()` after each step.
        callback: called after each step with the local and global variables.
        reward_threshold: the least mean return that is good enough.
        return_episode_rewards: whether to return lists instead of mean and deviation.
        warn: whether to warn of a wrapper that changes the rewards.
        seed: environment i is reset with `seed + i`; None for a fresh start.

    Returns:
        Mean and standard deviation of the returns; or, with `return_episode_rewards`, the list of
        returns and the list of lengths in steps, by environment and then by time.

    Raises:
        ValueError: fewer than one episode, or a mean return below the threshold.
    """
    vector_env = as_vector_env(env)
    if warn:
        warn_of_changed_rewards(vector_env)
    played = play_episodes(
        model, vector_env, n_eval_episodes, deterministic, render, callback, seed=seed
    )
    returns = [episode.return_ for episode in played]
    mean, std = float(np.mean(returns)), float(np.std(returns))
    if reward_threshold is not None and mean <= reward_threshold:
        raise ValueError(f"mean return {mean:.2f} is not above the threshold {reward_threshold}")
    if return_episode_rewards:
        return returns, [episode.length for episode in played]
    return mean, std


def play_episodes(
    model: Predictor,
    env: VectorEnv[Any, Any, Any],
    n_eval_episodes: int,
    deterministic: bool,
    render: bool = False,
    callback: EvaluationCallback | None = None,
    seed: int | None = None,
) -> list[Episode]:
    """Returns the episodes that `evaluate_policy` sums up, by environment and then by time.

    Arguments as there.

    Raises:
        ValueError: fewer than one episode.
    """
    if n_eval_episodes < 1:
        raise ValueError(f"n_eval_episodes must be at least 1, got {n_eval_episodes}")
    quota = _quota(n_eval_episodes, env.num_envs)
    episodes: list[list[Episode]] = [[] for _ in quota]
    for step_locals, ended in _play(model, env, deterministic, seed, episodes, quota):
        for episode in ended:
            if len(episodes[episode.env]) < quota[episode.env]:
                episodes[episode.env].append(episode)
        if callback is not None:
            callback(step_locals, globals())
        if render:
            env.render()
    return [episode for share in episodes for episode in share]


def _quota(episodes: int, num_envs: int) -> list[int]:
    """Returns each environment's share of the episodes; shares differ by one at the most."""
    return [(episodes + i) // num_envs for i in range(num_envs)]


def _play(
    model: Predictor,
    env: VectorEnv[Any, Any, Any],
    deterministic: bool,
    seed: int | None,
    episodes: list[list[Episode]],
    quota: list[int],
) -> Iterator[tuple[dict[str, Any], list[Episode]]]:
    """Steps until every share is played; yields each step and the episodes that it ended."""
    stepper = Stepper(env)
    statistics = EpisodeStatistics(env.num_envs, window=1)
    observations, _ = stepper.reset(seed=seed)
    state: Any = None
    starts: NDArray[np.bool_] = np.ones(env.num_envs, np.bool_)
    while any(len(share) < number for share, number in zip(episodes, quota, strict=True)):
        actions, state = model.predict(
            observations, state=state, episode_start=starts, deterministic=deterministic
        )
        step = stepper.step(actions)
        observations = step.observations
        starts = step.starts
        yield (
            {"actions": actions, "step": step, "model": model, "env": env},
            statistics.update(step),
        )


def warn_of_changed_rewards(env: Any) -> None:
    """Warns of vector wrappers that give other rewards than the environment inside."""
    changing = (
        gymnasium.wrappers.vector.NormalizeReward,
        gymnasium.wrappers.vector.TransformReward,
    )
    while isinstance(env, VectorWrapper):
        if isinstance(env, changing):
            warnings.warn(
                f"evaluation counts the rewards that {type(env).__name__} gives, not those of the "
                f"environment inside; evaluate without that wrapper for raw returns",
                stacklevel=3,
            )
        env = env.env
