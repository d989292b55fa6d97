"""Generalized advantage estimation with exact episode borders."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating]
BoolArray = NDArray[np.bool_]


def generalized_advantages(
    rewards: FloatArray,
    values: FloatArray,
    next_values: FloatArray,
    terminated: BoolArray,
    truncated: BoolArray,
    valid: BoolArray,
    gamma: float,
    gae_lambda: float,
) -> NDArray[np.float64]:
    r"""Returns the advantages of T steps in N environments.

    Schulman et al. 2016 (arXiv:1506.02438), equations 11 and 16, as a backward recursion:

        delta_t = r_t + gamma * (1 - terminated_t) * V(s'_t) - V(s_t)
        A_t     = delta_t + gamma * lambda * (1 - terminated_t or truncated_t) * A_{t+1}

    s'_t is the state that the action led to: the next row's state within an episode, the *final*
    state where the episode was truncated. Termination cuts the value; termination and truncation
    both cut the trace, since the next row belongs to another episode. A row that is not valid
    (such as the one an environment spends on its reset) has advantage 0 and passes no trace on:
    the row before it bootstraps from V(s'_t).

    Args:
        rewards: r_t, for t in [0, T-1], shape [T, N].
        values: V(s_t), for t in [0, T-1], shape [T, N].
        next_values: V(s'_t), for t in [0, T-1], shape [T, N].
        terminated: whether the episode ended by itself at t, shape [T, N].
        truncated: whether the episode was cut off at t, shape [T, N].
        valid: whether the row is a transition of the environment, shape [T, N].
        gamma: the discount, in [0, 1].
        gae_lambda: the trace decay, in [0, 1].

    Returns:
        A_t, shape [T, N], float64.
    """
    delta = rewards + gamma * np.where(terminated, 0.0, next_values) - values
    delta = np.where(valid, delta, 0.0)
    decay = gamma * gae_lambda * (valid & ~(terminated | truncated))
    advantages = np.empty(delta.shape, np.float64)
    following = np.zeros(delta.shape[1:], np.float64)
    for t in reversed(range(len(delta))):
        following = delta[t] + decay[t] * following
        advantages[t] = following
    return advantages


def explained_variance(values: FloatArray, returns: FloatArray) -> float:
    """Returns 1 - Var[returns - values] / Var[returns].

    1 is a perfect prediction, 0 no better than the mean, below 0 worse than it; NaN where the
    returns do not vary.

    Args:
        values: predicted returns, shape [n].
        returns: observed returns, shape [n].
    """
    variance = float(np.var(returns))
    if variance == 0.0:
        return float("nan")
    return 1.0 - float(np.var(returns - values)) / variance
