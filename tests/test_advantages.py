"""Generalized advantage estimation against hand arithmetic and a slow reference."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from batchppo.advantages import explained_variance, generalized_advantages


def column(*numbers):
    return np.array(numbers, np.float64)[:, None]


def flags(*numbers):
    return np.array(numbers, bool)[:, None]


def advantages(terminated, truncated, valid=(1, 1, 1), next_values=(20.0, 30.0, 40.0)):
    return generalized_advantages(
        column(1, 2, 3),
        column(10, 20, 30),
        column(*next_values),
        flags(*terminated),
        flags(*truncated),
        flags(*valid),
        gamma=0.5,
        gae_lambda=0.5,
    )[:, 0]


def test_within_an_episode():
    # delta_2 = 3 + 0.5 * 40 - 30 = -7;   A_2 = -7
    # delta_1 = 2 + 0.5 * 30 - 20 = -3;   A_1 = -3 + 0.25 * -7 = -4.75
    # delta_0 = 1 + 0.5 * 20 - 10 = 1;    A_0 = 1 + 0.25 * -4.75 = -0.1875
    assert advantages((0, 0, 0), (0, 0, 0)) == pytest.approx([-0.1875, -4.75, -7])


def test_termination_cuts_value_and_trace():
    # A_1 = 2 - 20 = -18, with neither V(s'_1) nor A_2;   A_0 = 1 + 0.25 * -18 = -3.5
    assert advantages((0, 1, 0), (0, 0, 0)) == pytest.approx([-3.5, -18, -7])


def test_truncation_cuts_the_trace_but_keeps_the_final_value():
    # V of the final state is 8: A_1 = 2 + 0.5 * 8 - 20 = -14;   A_0 = 1 + 0.25 * -14 = -2.5
    got = advantages((0, 0, 0), (0, 1, 0), next_values=(20, 8, 40))
    assert got == pytest.approx([-2.5, -14, -7])


def test_both_at_once_is_termination():
    got = advantages((0, 1, 0), (0, 1, 0), next_values=(20, 8, 40))
    assert got == pytest.approx([-3.5, -18, -7])


def test_a_row_that_is_no_transition_has_no_advantage_and_passes_none_on():
    # A_1 = 0;   A_0 = 1 + 0.5 * 20 - 10 + 0.25 * 0 = 1
    assert advantages((0, 0, 0), (0, 0, 0), valid=(1, 0, 1)) == pytest.approx([1, 0, -7])


@st.composite
def rollouts(draw):
    shape = (draw(st.integers(1, 12)), draw(st.integers(1, 4)))
    numbers = npst.arrays(np.float64, shape, elements=st.floats(-5, 5))
    booleans = npst.arrays(bool, shape)
    arrays = [draw(numbers) for _ in range(3)] + [draw(booleans) for _ in range(3)]
    return (*arrays, draw(st.floats(0, 1)), draw(st.floats(0, 1)))


@given(rollouts())
def test_equals_the_sum_of_its_definition(rollout):
    """A_t = sum_k (gamma lambda)^k delta_{t+k} up to the first border, as a double loop."""
    rewards, values, next_values, terminated, truncated, valid, gamma, gae_lambda = rollout
    expected = np.zeros_like(rewards)
    steps, num_envs = rewards.shape
    for i in range(num_envs):
        for t in range(steps):
            weight = 1.0
            for k in range(t, steps):
                if not valid[k, i]:
                    break
                following = 0.0 if terminated[k, i] else gamma * next_values[k, i]
                expected[t, i] += weight * (rewards[k, i] + following - values[k, i])
                if terminated[k, i] or truncated[k, i]:
                    break
                weight *= gamma * gae_lambda
    assert generalized_advantages(*rollout) == pytest.approx(expected, abs=1e-9)


def test_explained_variance():
    returns = np.array([1.0, 2.0, 3.0])
    assert explained_variance(returns, returns) == 1.0
    assert explained_variance(np.full(3, 2.0), returns) == pytest.approx(0.0)
    assert explained_variance(-returns, returns) == pytest.approx(-3.0)
    assert np.isnan(explained_variance(returns, np.ones(3)))
