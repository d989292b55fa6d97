"""Running statistics of observations and discounted returns, in float64.

They change only between rollouts, in one fixed order, so that every copy of them (in the acting
loop, in the update, on another machine) is the same within a rollout.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from batchppo.errors import NonFiniteError

FloatArray = NDArray[np.floating]
BoolArray = NDArray[np.bool_]

_EPSILON = 1e-8


class RunningMoments:
    """Mean and variance of a stream of vectors, merged a batch at a time.

    Chan, Golub and LeVeque 1979, "Updating Formulae and a Pairwise Algorithm for Computing Sample
    Variances", equations 2.1a and 2.1b: exact for batches of any size, with no cancellation.

    Args:
        size: the vectors' length.
        what: what the vectors are, for messages.
    """

    def __init__(self, size: int, what: str = "numbers") -> None:
        self._what = what
        self.count = 0
        self.mean = np.zeros(size, np.float64)
        self.squares = np.zeros(size, np.float64)  # sum of squared deviations from the mean

    @property
    def variance(self) -> NDArray[np.float64]:
        """The population variance, shape [size]; 1 before the first vector."""
        return self.squares / self.count if self.count else np.ones_like(self.mean)

    def update(self, batch: FloatArray) -> None:
        """Merges `batch`, shape [n, size]; n may be 0.

        Raises:
            NonFiniteError: its squares overflow; the statistics stay as they were.
        """
        added = len(batch)
        if added == 0:
            return
        batch = batch.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = batch.mean(axis=0)
            difference = mean - self.mean
            total = self.count + added
            squares = self.squares + np.square(batch - mean).sum(axis=0)
            squares += np.square(difference) * self.count * added / total
        if not np.isfinite(squares).all():
            raise NonFiniteError(
                f"the statistics of {self._what} overflow: the largest is "
                f"{np.abs(batch).max():g}; bring them to the order of 1 in the environment"
            )
        self.squares = squares
        self.mean = self.mean + difference * added / total
        self.count = total

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Returns the statistics as arrays, for a model file."""
        return {
            "count": np.float64(self.count).reshape(1),
            "mean": self.mean,
            "squares": self.squares,
        }

    def restore(self, state: dict[str, NDArray[np.float64]]) -> None:
        """Takes over what `state` returned."""
        self.count = int(state["count"][0])
        self.mean = np.array(state["mean"], np.float64)
        self.squares = np.array(state["squares"], np.float64)


class ObservationNormalizer:
    """Shifts and scales observation columns to mean 0 and variance 1, then clips.

    Args:
        columns: which columns are normalized, shape [size]; the others (one-hot) pass as they are.
        clip: the largest absolute value after scaling.
    """

    def __init__(self, columns: BoolArray, clip: float) -> None:
        self.moments = RunningMoments(len(columns), "observations")
        self._columns = columns
        self._clip = clip
        self._freeze()

    def update(self, observations: FloatArray) -> None:
        """Merges the observations, shape [n, size], into the statistics."""
        self.moments.update(observations)
        self._freeze()

    def normalize(self, observations: FloatArray) -> NDArray[np.float32]:
        """Returns clip((o - mean) / sqrt(variance + 1e-8)), shape [..., size], float32."""
        # The subtraction keeps the observations' own precision; float32 alone would lose a small
        # movement around a large offset.
        normalized = observations - self._shift
        normalized *= self._scale
        np.maximum(normalized, self._lower, out=normalized)
        np.minimum(normalized, self._upper, out=normalized)
        return normalized.astype(np.float32)

    def restore(self, state: dict[str, NDArray[np.float64]]) -> None:
        """Takes over stored statistics."""
        self.moments.restore(state)
        self._freeze()

    def _freeze(self) -> None:
        scale = 1.0 / np.sqrt(self.moments.variance + _EPSILON)
        self._shift = np.where(self._columns, self.moments.mean, 0.0)
        self._scale = np.where(self._columns, scale, 1.0)
        self._upper = np.where(self._columns, self._clip, np.inf)
        self._lower = -self._upper


class RewardNormalizer:
    """Divides rewards by the standard deviation of the discounted return, then clips.

    The mean is not subtracted: that would change which policy is best wherever episodes can end.

    Args:
        gamma: the discount of the return.
        clip: the largest absolute reward after scaling.
    """

    def __init__(self, gamma: float, clip: float) -> None:
        self.moments = RunningMoments(1, "discounted returns")
        self._gamma = gamma
        self._clip = clip
        self._returns: NDArray[np.float64] | None = None

    def begin(self, num_envs: int) -> None:
        """Forgets the running returns: all environments start a new episode."""
        self._returns = np.zeros(num_envs, np.float64)

    def update(self, rewards: FloatArray, done: BoolArray, valid: BoolArray) -> None:
        """Follows T steps of N environments and merges their discounted returns.

        Args:
            rewards: raw rewards, shape [T, N].
            done: where an episode ended, shape [T, N]; the return starts at 0 behind it.
            valid: which rows count, shape [T, N]; the others leave the return as it is.
        """
        if self._returns is None or len(self._returns) != rewards.shape[1]:
            self.begin(rewards.shape[1])
        returns = np.array(self._returns)
        followed = np.empty(rewards.shape, np.float64)
        for t in range(len(rewards)):  # a sum that overflows is told by the statistics
            followed[t] = np.where(valid[t], self._gamma * returns + rewards[t], returns)
            returns = np.where(done[t], 0.0, followed[t])
        self._returns = returns
        self.moments.update(followed[valid][:, None])

    def normalize(self, rewards: FloatArray) -> NDArray[np.float64]:
        """Returns clip(r / sqrt(Var[discounted return] + 1e-8)), the shape of `rewards`."""
        scale = 1.0 / np.sqrt(self.moments.variance[0] + _EPSILON)
        return np.asarray(np.clip(rewards * scale, -self._clip, self._clip), np.float64)
