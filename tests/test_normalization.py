"""Running statistics against NumPy's over everything at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from batchppo.normalization import ObservationNormalizer, RewardNormalizer, RunningMoments

BATCHES = st.lists(
    npst.arrays(
        np.float64, st.tuples(st.integers(0, 7), st.just(3)), elements=st.floats(-1e3, 1e3)
    ),
    min_size=1,
    max_size=6,
)


@given(BATCHES)
def test_merged_moments_are_those_of_all_data(batches):
    moments = RunningMoments(3)
    for batch in batches:
        moments.update(batch)
    everything = np.concatenate(batches)
    assert moments.count == len(everything)
    if len(everything):
        assert moments.mean == pytest.approx(everything.mean(axis=0), abs=1e-6)
        assert moments.variance == pytest.approx(everything.var(axis=0), abs=1e-6)


def test_no_cancellation_around_a_large_offset():
    rng = np.random.default_rng(0)
    data = 1e9 + rng.standard_normal((1000, 1))
    moments = RunningMoments(1)
    for batch in np.split(data, 10):
        moments.update(batch)
    assert moments.variance == pytest.approx(data.var(axis=0), rel=1e-6)


def test_moments_survive_state_and_restore():
    moments = RunningMoments(2)
    moments.update(np.array([[1.0, 2.0], [3.0, 6.0]]))
    copy = RunningMoments(2)
    copy.restore(moments.state())
    for each in (moments, copy):
        each.update(np.array([[5.0, 5.0]]))
    assert copy.count == 3
    assert np.array_equal(copy.variance, moments.variance)


def test_observations_are_shifted_scaled_and_clipped():
    normalizer = ObservationNormalizer(np.array([True, True]), clip=2.0)
    normalizer.update(np.array([[0.0, 10.0], [4.0, 10.0]]))  # mean 2, 10; deviation 2, 0
    got = normalizer.normalize(np.array([[4.0, 10.0], [-100.0, 10.0]]))
    assert got.dtype == np.float32
    assert got == pytest.approx(np.array([[1.0, 0.0], [-2.0, 0.0]]))


def test_other_columns_pass_as_they_are():
    normalizer = ObservationNormalizer(np.array([True, False]), clip=2.0)
    normalizer.update(np.array([[0.0, 0.0], [4.0, 1.0]]))
    assert normalizer.normalize(np.array([[2.0, 50.0]])).tolist() == [[0.0, 50.0]]


def test_nothing_changes_before_the_first_observation():
    normalizer = ObservationNormalizer(np.array([True]), clip=10.0)
    assert normalizer.normalize(np.array([[3.0]])) == pytest.approx(np.array([[3.0]]))


def test_a_small_movement_around_a_large_offset_is_seen():
    normalizer = ObservationNormalizer(np.array([True]), clip=10.0)
    normalizer.update(np.array([[1e9], [1e9 + 2.0]]))
    assert normalizer.normalize(np.array([[1e9 + 2.0]])) == pytest.approx(np.array([[1.0]]))


def discounted(rewards, done, valid, gamma):
    """The discounted return after each valid row of one environment, by its definition."""
    total, result = 0.0, []
    for reward, is_done, is_valid in zip(rewards, done, valid, strict=True):
        if is_valid:
            total = gamma * total + reward
            result.append(total)
        if is_done:
            total = 0.0
    return result


def test_rewards_are_divided_by_the_deviation_of_the_discounted_return():
    rng = np.random.default_rng(1)
    rewards = rng.standard_normal((40, 3))
    done, valid = rng.random((40, 3)) < 0.2, rng.random((40, 3)) < 0.9
    normalizer = RewardNormalizer(gamma=0.9, clip=100.0)
    for part in (slice(0, 15), slice(15, 40)):  # the returns go on over rollouts
        normalizer.update(rewards[part], done[part], valid[part])
    columns = zip(rewards.T, done.T, valid.T, strict=True)
    followed = np.concatenate([discounted(*column, 0.9) for column in columns])
    expected = rewards / np.sqrt(followed.var() + 1e-8)
    assert normalizer.normalize(rewards) == pytest.approx(expected)


def test_rewards_are_clipped_and_not_shifted():
    normalizer = RewardNormalizer(gamma=0.0, clip=3.0)
    normalizer.update(np.array([[0.0], [2.0]]), np.ones((2, 1), bool), np.ones((2, 1), bool))
    got = normalizer.normalize(np.array([0.0, 1.0, -50.0]))
    assert got == pytest.approx([0.0, 1.0, -3.0])


def test_a_reward_that_never_changes_stays_finite():
    normalizer = RewardNormalizer(gamma=0.9, clip=10.0)
    ones = np.ones((5, 2), bool)
    normalizer.update(np.zeros((5, 2)), ~ones, ones)
    assert np.isfinite(normalizer.normalize(np.zeros((5, 2)))).all()
