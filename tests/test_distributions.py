"""The learning side against formulas, the acting side and each other."""

import math

import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

from batchppo.actions import Choices, DiagonalGaussian, action_distribution
from batchppo.distributions import tensor_distribution
from batchppo.errors import SpaceError

SPACES = {
    "gaussian": spaces.Box(-1.0, 1.0, (2, 3), np.float32),
    "squashed": spaces.Box(np.array([-1.0, 0.0], np.float32), np.array([3.0, 0.5], np.float32)),
    "categorical": spaces.Discrete(5, start=2),
    "choices": spaces.MultiDiscrete([2, 3, 4]),
    "binary": spaces.MultiBinary(3),
}
MANY = 200_000


def both_sides(kind):
    acting = action_distribution(SPACES[kind], squash=kind == "squashed")
    return acting, tensor_distribution(acting)


def random_parameters(acting, rows, seed=0):
    return np.random.default_rng(seed).standard_normal((rows, acting.parameter_size), np.float32)


@pytest.mark.parametrize("kind", SPACES)
def test_numpy_and_tensorflow_draw_the_same_actions_from_the_same_noise(kind):
    acting, learning = both_sides(kind)
    parameters = random_parameters(acting, 1000)
    noise = acting.draw_noise(np.random.default_rng(1), (1000,))
    ours = acting.sample(parameters, noise)
    theirs = learning.sample(tf.constant(parameters), tf.constant(noise)).numpy()
    assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-6)
    assert ours.dtype == theirs.dtype == acting.action_dtype
    assert ours.shape == (1000, *acting.action_shape)


@pytest.mark.parametrize("kind", SPACES)
def test_entropy_and_divergence_are_the_means_of_log_probabilities(kind):
    """-E[log p] and E[log p - log q] over many samples of p."""
    acting, learning = both_sides(kind)
    old, new = (0.5 * random_parameters(acting, 1, seed) for seed in (2, 3))
    rows = np.repeat(old, MANY, axis=0)
    actions = acting.sample(rows, acting.draw_noise(np.random.default_rng(4), (MANY,)))
    log_p = learning.log_prob(tf.constant(rows), tf.constant(actions)).numpy()
    log_q = learning.log_prob(tf.constant(np.repeat(new, MANY, axis=0)), tf.constant(actions))
    assert learning.entropy(tf.constant(old)).numpy()[0] == pytest.approx(-log_p.mean(), abs=0.02)
    divergence = learning.kl_divergence(tf.constant(old), tf.constant(new)).numpy()[0]
    assert divergence == pytest.approx((log_p - log_q.numpy()).mean(), abs=0.02)
    assert learning.kl_divergence(tf.constant(old), tf.constant(old)).numpy() == pytest.approx(0.0)


def test_gaussian_log_probability_by_hand():
    learning = tensor_distribution(DiagonalGaussian(spaces.Box(-1, 1, (2,), np.float32)))
    parameters = tf.constant([[1.0, 0.0, math.log(2.0), 0.0]])  # means 1 and 0, deviations 2 and 1
    got = learning.log_prob(parameters, tf.constant([[3.0, 2.0]])).numpy()[0]
    # Both are one and two deviations off: -(1 + 4) / 2 - log 2 - log 1 - 2 * log(2 pi) / 2
    assert got == pytest.approx(-2.5 - math.log(2.0) - math.log(2.0 * math.pi))


def test_categorical_log_probability_by_hand():
    learning = tensor_distribution(Choices(spaces.Discrete(3)))
    logits = tf.constant([[math.log(1.0), math.log(2.0), math.log(5.0)]] * 2)
    got = learning.log_prob(logits, tf.constant([1, 2])).numpy()
    assert got == pytest.approx([math.log(2 / 8), math.log(5 / 8)])


def test_categorical_samples_have_the_probabilities_of_the_softmax():
    acting = Choices(spaces.Discrete(3))
    logits = np.log(np.array([[1.0, 2.0, 5.0]], np.float32)).repeat(MANY, axis=0)
    drawn = acting.sample(logits, acting.draw_noise(np.random.default_rng(0), (MANY,)))
    assert np.bincount(drawn) / MANY == pytest.approx([1 / 8, 2 / 8, 5 / 8], abs=0.005)


def test_modes():
    gaussian = DiagonalGaussian(spaces.Box(-1, 1, (2,), np.float32))
    assert gaussian.mode(np.array([[3.0, -4.0, 9.0, 9.0]])).tolist() == [[3.0, -4.0]]
    assert Choices(spaces.Discrete(3)).mode(np.array([[0.0, 2.0, 1.0]])).tolist() == [1]


def test_environments_get_the_space_s_shape_type_start_and_bounds():
    gaussian = DiagonalGaussian(spaces.Box(-1.0, 2.0, (2, 1), np.float64))
    got = gaussian.to_environment(np.array([[-3.0, 5.0]], np.float32))
    assert got.tolist() == [[[-1.0], [2.0]]]
    assert got.dtype == np.float64
    choice = Choices(spaces.Discrete(3, start=-1)).to_environment(np.array([0, 2], np.int32))
    assert choice.tolist() == [-1, 1]
    assert choice.dtype == np.int64


def test_infinite_bounds_clip_nothing():
    gaussian = DiagonalGaussian(spaces.Box(-np.inf, np.inf, (1,), np.float32))
    assert gaussian.to_environment(np.array([[1e9]], np.float32)) == pytest.approx(1e9)


def test_an_extreme_deviation_stays_finite():
    acting, learning = both_sides("gaussian")
    parameters = np.full((1, acting.parameter_size), 1e6, np.float32)
    drawn = acting.sample(parameters, np.ones((1, 6), np.float32))
    assert np.isfinite(drawn).all()
    assert np.isfinite(learning.log_prob(tf.constant(parameters), tf.constant(drawn)).numpy()).all()


def test_choices_of_several_are_drawn_one_by_one():
    acting = Choices(spaces.MultiDiscrete([2, 3], start=[10, 20]))
    logits = np.array([[0.0, 5.0, 1.0, 2.0, 9.0]], np.float32)
    assert acting.mode(logits).tolist() == [[1, 2]]
    assert acting.to_environment(acting.mode(logits)).tolist() == [[11, 22]]
    grid = Choices(spaces.MultiDiscrete([[2, 2], [3, 3]]))
    assert grid.to_environment(np.array([[0, 1, 2, 1]])).tolist() == [[[0, 1], [2, 1]]]


def test_binary_samples_have_the_probabilities_of_the_sigmoid():
    acting, _ = both_sides("binary")
    logits = np.log(np.array([[0.1, 0.5, 0.9]], np.float32) / np.array([[0.9, 0.5, 0.1]]))
    rows = logits.astype(np.float32).repeat(MANY, axis=0)
    drawn = acting.sample(rows, acting.draw_noise(np.random.default_rng(0), (MANY,)))
    assert drawn.mean(axis=0) == pytest.approx([0.1, 0.5, 0.9], abs=0.005)
    assert acting.to_environment(drawn).dtype == np.int8


def test_squashed_actions_fill_their_bounds_and_never_leave_them():
    acting, _ = both_sides("squashed")
    actions = acting.to_environment(
        np.array([[0.0, 0.0], [50.0, 50.0], [-50.0, -50.0]], np.float32)
    )
    assert actions == pytest.approx(np.array([[1.0, 0.25], [3.0, 0.5], [-1.0, 0.0]]))
    assert all(acting.space.contains(action) for action in actions)


def test_a_squashed_density_integrates_to_one():
    """The log-probability is that of the action as the environment gets it, bounds included."""
    space = spaces.Box(-2.0, 6.0, (1,), np.float32)
    acting = action_distribution(space, squash=True)
    learning = tensor_distribution(acting)
    before = np.linspace(-9.0, 9.0, 20_001, dtype=np.float32)[:, None]
    parameters = np.tile(np.array([[0.4, -0.3]], np.float32), (len(before), 1))
    density = np.exp(learning.log_prob(tf.constant(parameters), tf.constant(before)).numpy())
    actions = acting.to_environment(before)[:, 0].astype(np.float64)
    assert np.trapezoid(density, actions) == pytest.approx(1.0, abs=1e-3)


def test_squashing_needs_finite_bounds_and_a_box():
    with pytest.raises(SpaceError, match="finite action bounds.*RescaleAction"):
        action_distribution(spaces.Box(-np.inf, 1.0, (1,), np.float32), squash=True)
    with pytest.raises(SpaceError, match="squash_output=True needs a Box"):
        action_distribution(spaces.Discrete(2), squash=True)


@pytest.mark.parametrize(
    "space", [spaces.Text(5), spaces.Box(0, 255, (3,), np.uint8), spaces.Dict(a=spaces.Discrete(2))]
)
def test_other_action_spaces_are_refused_by_name(space):
    with pytest.raises(SpaceError, match="actions of .* are not supported.*TransformAction"):
        action_distribution(space)
