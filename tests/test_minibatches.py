"""Every row exactly once an epoch, whatever the numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchppo.minibatches import shuffled_minibatches


def deal(valid_rows, capacity, batch_size, n_epochs=2, seed=0):
    rng = np.random.default_rng(seed)
    return shuffled_minibatches(np.asarray(valid_rows), capacity, batch_size, n_epochs, rng)


@given(
    capacity=st.integers(1, 60),
    batch_size=st.integers(1, 80),
    n_epochs=st.integers(1, 3),
    data=st.data(),
)
def test_each_epoch_has_every_valid_row_once_and_no_other(capacity, batch_size, n_epochs, data):
    valid_rows = data.draw(
        st.lists(st.integers(0, capacity - 1), min_size=1, max_size=capacity, unique=True)
    )
    got = deal(valid_rows, capacity, batch_size, n_epochs)
    size = min(batch_size, capacity)
    assert got.rows.shape == got.weights.shape == (n_epochs * -(-capacity // size), size)
    assert got.total == n_epochs * got.per_epoch
    for epoch in range(n_epochs):
        block = slice(epoch * got.per_epoch, (epoch + 1) * got.per_epoch)
        used = got.rows[block][got.weights[block] == 1]
        assert sorted(used) == sorted(valid_rows)
    assert got.weights[got.total :].sum() == 0


@given(st.integers(1, 500), st.integers(1, 100))
def test_minibatches_differ_by_one_row_at_the_most(rows, batch_size):
    got = deal(np.arange(rows), rows, batch_size, n_epochs=1)
    sizes = got.weights.sum(axis=1)[: got.total]
    assert sizes.max() - sizes.min() <= 1
    assert sizes.max() <= batch_size


def test_a_remainder_of_one_is_dealt_out():
    got = deal(np.arange(1025), 1025, 256, n_epochs=1)
    assert got.weights.sum(axis=1).tolist() == [205] * 5


def test_the_shape_does_not_depend_on_how_many_rows_are_valid():
    shapes = {deal(np.arange(n), 64, 16).rows.shape for n in (1, 15, 16, 17, 63, 64)}
    assert len(shapes) == 1


def test_epochs_are_shuffled_anew():
    got = deal(np.arange(100), 100, 100)
    assert not np.array_equal(got.rows[0], got.rows[1])
    assert not np.array_equal(got.rows[0], np.arange(100))


def test_same_seed_same_order():
    one, two, other = (deal(np.arange(50), 50, 10, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(one.rows, two.rows)
    assert not np.array_equal(one.rows, other.rows)


@pytest.mark.parametrize("batch_size", [2048, 64])
def test_a_batch_larger_than_the_rollout_is_one_minibatch(batch_size):
    assert deal(np.arange(64), 64, batch_size).per_epoch == 1
