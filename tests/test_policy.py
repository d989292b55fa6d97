"""The acting policy against Keras, layer by layer."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

from batchppo.actions import action_distribution
from batchppo.activations import NUMPY_ACTIVATIONS, activation_name
from batchppo.architecture import Architecture
from batchppo.config import PPOConfig
from batchppo.dense import actor_network
from batchppo.errors import NonFiniteError
from batchppo.model_state import build_policy
from batchppo.networks import ActorCritic
from batchppo.observations import ObservationEncoder
from batchppo.weight_shapes import weight_shapes


def box(size):
    return spaces.Box(-1, 1, (size,), np.float32)


ACTIONS = {"box": spaces.Box(-1, 1, (2,), np.float32), "discrete": spaces.Discrete(4)}


@pytest.mark.parametrize("name", NUMPY_ACTIVATIONS)
def test_activations_are_those_of_keras(name):
    x = np.linspace(-30, 30, 301, dtype=np.float32)
    expected = keras.ops.convert_to_numpy(keras.activations.get(name)(x))
    assert NUMPY_ACTIVATIONS[name](x.copy()) == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_activation_names():
    assert activation_name(tf.nn.relu) == "relu"
    assert activation_name("Swish") == "silu"
    with pytest.raises(ValueError, match="unknown activation <function"):
        activation_name(lambda x: x)


@pytest.mark.parametrize("actions", ACTIONS)
@pytest.mark.parametrize("widths", [(), (7,), (16, 5)])
@pytest.mark.parametrize("activation", ["tanh", "relu", "elu"])
def test_numpy_puts_out_keras_parameters(actions, widths, activation):
    distribution = action_distribution(ACTIONS[actions])
    architecture = Architecture(pi=widths, activation=activation, log_std_init=-0.7)
    encoder = ObservationEncoder(box(6))
    network = ActorCritic(encoder, distribution, architecture, seed=3)
    inputs = {"vector": np.random.default_rng(0).standard_normal((50, 6), np.float32)}
    got, _ = actor_network(network.weights(), activation)(inputs)
    expected = network.parameters(inputs).numpy()
    assert got == pytest.approx(expected, abs=1e-5)
    shapes = {name: weights.shape for name, weights in network.weights().items()}
    assert shapes == weight_shapes(encoder, distribution, architecture)


@pytest.mark.parametrize("widths", [(), (7, 5)])
@pytest.mark.parametrize("squash", [False, True])
def test_state_dependent_noise_is_what_it_says(widths, squash):
    """The drawn actions have the mean and deviation that learning computes for each state."""
    encoder = ObservationEncoder(box(6))
    architecture = Architecture(pi=widths, log_std_init=-0.5, use_sde=True)
    latent = architecture.latent_size(encoder)
    acting = action_distribution(ACTIONS["box"], squash, latent_size=latent, sample_freq=-1)
    network = ActorCritic(encoder, acting, architecture, seed=3)
    shapes = {name: weights.shape for name, weights in network.weights().items()}
    assert shapes == weight_shapes(encoder, acting, architecture)
    rng = np.random.default_rng(0)
    inputs = {"vector": rng.standard_normal((3, 6), np.float32)}
    parameters, _ = actor_network(network.weights(), "tanh")(inputs)
    assert parameters == pytest.approx(network.parameters(inputs).numpy(), abs=1e-5)
    drawn = np.stack([acting.sample(parameters, acting.draw_noise(rng, (3,))) for _ in range(9999)])
    assert drawn.mean(axis=0) == pytest.approx(parameters[:, :2], abs=0.1)
    assert np.log(drawn.std(axis=0)) == pytest.approx(parameters[:, 2:4], abs=0.05)


def test_state_dependent_noise_lasts_for_its_frequency():
    def draws(freq):
        acting = action_distribution(ACTIONS["box"], latent_size=3, sample_freq=freq)
        noise = acting.draw_noise(np.random.default_rng(0), (7, 2))
        assert noise.shape == (7, 2, 6)
        changed = [t for t in range(1, 7) if not np.array_equal(noise[t], noise[t - 1])]
        assert not np.array_equal(noise[0, 0], noise[0, 1])
        return changed

    assert draws(-1) == []
    assert draws(1) == [1, 2, 3, 4, 5, 6]
    assert draws(3) == [3, 6]


def test_initial_weights():
    distribution = action_distribution(ACTIONS["box"])
    encoder = ObservationEncoder(box(8))
    network = ActorCritic(encoder, distribution, Architecture(pi=(8,), vf=(8,)), seed=0)
    hidden = network.weights()["actor/0/kernel"]
    assert hidden @ hidden.T == pytest.approx(2.0 * np.eye(8), abs=1e-5)  # orthogonal, sqrt(2)
    head = network.weights()["actor/1/kernel"]
    assert head.T @ head == pytest.approx(1e-4 * np.eye(2), abs=1e-8)
    other = ActorCritic(encoder, distribution, Architecture(pi=(8,), vf=(8,)), seed=1)
    assert not np.array_equal(hidden, other.weights()["actor/0/kernel"])
    glorot = ActorCritic(encoder, distribution, Architecture(pi=(8,), ortho_init=False), seed=0)
    assert np.abs(glorot.weights()["actor/0/kernel"]).max() < np.sqrt(6 / 16)


def test_weights_that_are_not_finite_are_named():
    config = PPOConfig(normalize_observations=False)
    spaces_ = box(2), ACTIONS["discrete"]
    rng = np.random.default_rng(0)
    policy = build_policy("MlpPolicy", *spaces_, config, Architecture(), rng)
    shapes = weight_shapes(policy.encoder, policy.distribution, Architecture())
    policy.network = actor_network({n: np.full(s, np.nan) for n, s in shapes.items()}, "tanh")
    with pytest.raises(NonFiniteError, match="weights are not finite"):
        policy.predict(np.zeros(2))
