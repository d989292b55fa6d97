"""Returns and lengths of the last episodes, without any wrapper."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from batchppo.transitions import Transitions


class Episode(NamedTuple):
    """An episode that has ended.

    Attributes:
        env: the environment's index.
        return_: the undiscounted sum of its rewards.
        length: its length in steps.
        success: its `info["is_success"]`; None where the environment reports none.
    """

    env: int
    return_: float
    length: int
    success: float | None


class EpisodeStatistics:
    """Follows N environments and keeps the returns and lengths of the last episodes.

    Where a wrapper reports an episode itself (`infos["episode"]`, as RecordEpisodeStatistics
    does), its figures are taken: it may sit inside of a wrapper that changes rewards.

    Args:
        num_envs: N.
        window: how many episodes to keep.

    Attributes:
        returns: undiscounted returns of the last episodes, oldest first.
        lengths: their lengths in steps.
        successes: their `info["is_success"]`, where environments report it.
        count: how many episodes ended since the start.
    """

    def __init__(self, num_envs: int, window: int) -> None:
        self.returns: deque[float] = deque(maxlen=window)
        self.lengths: deque[int] = deque(maxlen=window)
        self.successes: deque[float] = deque(maxlen=window)
        self.count = 0
        self.begin(num_envs)

    def begin(self, num_envs: int) -> None:
        """Forgets the running episodes: all environments start a new one."""
        self._return = np.zeros(num_envs, np.float64)
        self._length = np.zeros(num_envs, np.int64)

    def update(self, step: Transitions) -> list[Episode]:
        """Follows one step and returns the episodes that it ended, by environment."""
        np.add(self._return, step.rewards, out=self._return, where=step.valid)
        self._length += step.valid
        done = step.terminated | step.truncated
        if not done.any():
            return []
        ended = [self._episode(int(env), step.infos) for env in np.flatnonzero(done & step.valid)]
        self._return[done] = 0.0
        self._length[done] = 0
        self.count += len(ended)
        self.returns.extend(episode.return_ for episode in ended)
        self.lengths.extend(episode.length for episode in ended)
        self.successes.extend(e.success for e in ended if e.success is not None)
        return ended

    def figures(self) -> dict[str, float]:
        """Returns the means of what there is, by their logger keys."""
        kept = {
            "rollout/ep_rew_mean": self.returns,
            "rollout/ep_len_mean": self.lengths,
            "rollout/success_rate": self.successes,
        }
        return {key: float(np.mean(np.asarray(values))) for key, values in kept.items() if values}

    def _episode(self, env: int, infos: dict[str, Any]) -> Episode:
        return_, length = self._return[env], self._length[env]
        reported = _reported(infos, "episode", env)
        if reported is not None:
            return_, length = reported["r"][env], reported["l"][env]
        success = _reported(infos, "is_success", env)
        return Episode(
            env, float(return_), int(length), None if success is None else float(success[env])
        )


def _reported(infos: dict[str, Any], key: str, index: int) -> Any:
    """Returns the vector info `key` if environment `index` has it, also inside `final_info`."""
    for source in (infos, infos.get("final_info", {})):
        mask: NDArray[np.bool_] | None = source.get(f"_{key}")
        if mask is not None and mask[index]:
            return source[key]
    return None
