"""What became NaN or infinite in an update, by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Never

import numpy as np
from numpy.typing import NDArray

from batchppo.errors import NonFiniteError
from batchppo.rollout import Rollout
from batchppo.update import UpdateResult

_UNDONE = "the agent is as it was before this update"


def require_finite_targets(
    columns: Mapping[str, NDArray[np.floating]],
    rollout: Rollout,
    weights: Callable[[], Mapping[str, NDArray[Any]]],
) -> None:
    """Raises NonFiniteError for the first column that is not finite in a row that counts.

    Args:
        columns: what an update learns from, by name, shapes [T, N].
        rollout: where it comes from.
        weights: returns the network's weights, which are looked at first where something is wrong.
    """
    for name, column in columns.items():
        bad = ~np.isfinite(column) & rollout.valid
        if bad.any():
            require_finite_weights(weights())
            rewards = np.where(rollout.valid, np.abs(rollout.rewards), 0.0)
            step, env = np.unravel_index(np.argmax(rewards), rewards.shape)
            raise NonFiniteError(
                f"'{name}' became {column[bad][0]}; the largest reward of the rollout is "
                f"{rollout.rewards[step, env]:g}, of environment {env}. Scale rewards to the order "
                f"of 1 in the environment, or leave normalize_rewards=True; {_UNDONE}"
            )


def require_finite_weights(weights: Mapping[str, NDArray[Any]]) -> None:
    """Raises NonFiniteError with the name of the first weight that is not finite."""
    for name, weight in weights.items():
        if not np.isfinite(weight).all():
            raise NonFiniteError(
                f"the weights hold NaN or infinity, first in '{name}'; whoever set them spoilt "
                f"them: go on from a saved model that is sound"
            )


def raise_not_finite(result: UpdateResult, gradient: str | None) -> Never:
    """Raises NonFiniteError for an update that was undone.

    Args:
        result: of the update.
        gradient: the name of the first weight whose gradient is not finite, if there is one.
    """
    means = {**result.means._asdict()}
    means["loss"] = means.pop("loss")  # the sum of the others: behind them
    bad = [name for name, value in means.items() if not math.isfinite(value)]
    if bad:
        what = f"'{bad[0]}' became NaN or infinite"
    elif gradient is not None:
        what = f"the gradient of '{gradient}' became NaN or infinite"
    else:
        what = "the norm of the gradient became infinite, though no entry of it is"
    raise NonFiniteError(
        f"{what} in gradient step {result.steps + 1} of this update; {_UNDONE}. A smaller "
        f"learning_rate, max_grad_norm=0.5 or normalized observations usually help"
    )
