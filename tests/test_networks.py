"""The networks of the first batch-ppo, and how they act in NumPy."""

import math

import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces
from ppo_envs import CountingEnv

from batchppo import BatchPPO, learner, load_policy
from batchppo.actions import action_distribution
from batchppo.architecture import Architecture
from batchppo.dense import log_deviations
from batchppo.errors import SpaceError
from batchppo.observations import ObservationEncoder
from batchppo.recurrent_acting import numpy_network
from batchppo.recurrent_networks import make_network
from batchppo.weight_shapes import weight_shapes

ENCODER = ObservationEncoder(spaces.Box(-1, 1, (3,), np.float32))
UNIT_BOX = spaces.Box(-1, 1, (2,), np.float32)
GAUSSIAN = {"mean_activation": "tanh", "std_activation": "softplus", "output_init_scale": 0.1}
ARCHITECTURES = {
    "dense": Architecture(pi=(6, 4), vf=(5,), log_std_init=math.log(0.35), **GAUSSIAN),
    "no hidden layer": Architecture(pi=(), vf=(), **GAUSSIAN),
    "state-dependent noise": Architecture(pi=(6,), use_sde=True, **GAUSSIAN),
    "recurrent": Architecture(
        pi=(), vf=(6, 5), front=(7,), cell="gru", recurrent_size=4, critic_cell=False, **GAUSSIAN
    ),
    "both fronts": Architecture(front=(7, 6), cell="lstm", recurrent_size=4, **GAUSSIAN),
}


def network_of(architecture, seed=0):
    latent = architecture.latent_size(ENCODER) if architecture.use_sde else None
    distribution = action_distribution(UNIT_BOX, latent_size=latent)
    return make_network(ENCODER, distribution, architecture, seed), distribution


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_weights_have_the_shapes_that_a_model_file_is_checked_against(kind):
    network, distribution = network_of(ARCHITECTURES[kind])
    shapes = {name: weight.shape for name, weight in network.weights().items()}
    assert shapes == weight_shapes(ENCODER, distribution, ARCHITECTURES[kind])


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_numpy_acts_as_tensorflow_learns(kind):
    architecture = ARCHITECTURES[kind]
    network, _ = network_of(architecture)
    weights = {
        # Larger weights than the initial ones, so that tanh bends.
        name: np.random.default_rng(i).standard_normal(weight.shape, np.float32)
        for i, (name, weight) in enumerate(network.weights().items())
    }
    network.set_weights(weights)
    acting = numpy_network(network.weights(), architecture)
    rng = np.random.default_rng(0)
    inputs = {"vector": rng.standard_normal((5, 3), np.float32)}
    if architecture.cell is None:
        expected, state = network.parameters(inputs), None
    else:
        inputs["episode_start"] = np.array([True, False, True, False, False])
        state = rng.standard_normal((5, network.state_size), np.float32)
        expected, _ = network.act({**inputs, "actor_state": tf.constant(state)})
    parameters, _ = acting(inputs, state)
    assert parameters == pytest.approx(expected.numpy(), rel=1e-4, abs=1e-5)
    assert np.abs(parameters[:, :2]).max() <= 1.0


def test_means_are_tanh_of_the_output_layer_by_hand():
    architecture = ARCHITECTURES["no hidden layer"]
    weights = {
        "actor/0/kernel": np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]], np.float32),
        "actor/0/bias": np.array([0.5, 0.0], np.float32),
        "raw_std": np.array([0.0, 3.0], np.float32),
    }
    inputs = {"vector": np.array([[1.0, -1.0, 9.0]], np.float32)}
    parameters, _ = numpy_network(weights, architecture)(inputs, None)
    deviations = [math.log(2.0), math.log1p(math.exp(3.0))]  # softplus of 0 and 3
    assert parameters[0] == pytest.approx(
        [math.tanh(1.5), math.tanh(-2.0), math.log(deviations[0]), math.log(deviations[1])]
    )


@pytest.mark.parametrize("std_activation", ["exp", "softplus"])
def test_the_initial_deviation_does_not_depend_on_how_it_is_made(std_activation):
    architecture = Architecture(log_std_init=math.log(0.35), std_activation=std_activation)
    network, _ = network_of(architecture)
    assert np.exp(network.log_std().numpy()) == pytest.approx([0.35, 0.35])
    assert np.exp(log_deviations(network.weights())) == pytest.approx([0.35, 0.35])


def test_a_softplus_deviation_never_becomes_zero():
    lowest = log_deviations({"raw_std": np.full(2, -1e4, np.float32)})
    assert lowest == pytest.approx([-20.0, -20.0], abs=1e-3)
    network, _ = network_of(ARCHITECTURES["dense"])
    network.set_weights({**network.weights(), "raw_std": np.full(2, -1e4, np.float32)})
    assert network.log_std().numpy() == pytest.approx(lowest, abs=1e-3)


def test_output_init_scale_is_the_variance_of_the_output_weights_times_their_inputs():
    network, _ = network_of(Architecture(pi=(5000,), output_init_scale=0.1))
    kernel = network.weights()["actor/1/kernel"]
    assert kernel.var() * 5000 == pytest.approx(0.1, rel=0.1)


def test_a_critic_without_cell_reads_one_observation_at_a_time():
    network, _ = network_of(ARCHITECTURES["recurrent"])
    rng = np.random.default_rng(1)
    rows = {
        "vector": tf.constant(rng.standard_normal((2, 5, 3), np.float32)),
        "episode_start": tf.zeros((2, 5), tf.bool),
        "actor_state": tf.zeros((2, network.state_size)),
        "critic_state": tf.zeros((2, network.critic_state_size)),
    }
    _, values, (_, critic_states) = network.sequences(rows)
    flat = {"vector": tf.reshape(rows["vector"], (10, 3))}
    assert values.numpy() == pytest.approx(network.values(flat).numpy(), abs=1e-6)
    assert critic_states.shape == (2, 5, 0)


def test_policy_kwargs_describe_the_recurrent_network_of_the_first_batch_ppo():
    kwargs = {"net_arch": {"front": [200], "pi": [], "vf": [200, 100]}, "recurrent_size": 100}
    architecture = Architecture.from_policy_kwargs(
        {**kwargs, "enable_critic_lstm": False, "activation_fn": "relu"}, "MlpGruPolicy"
    )
    assert architecture == Architecture(
        front=(200,), pi=(), vf=(200, 100), recurrent_size=100,
        critic_cell=False, activation="relu", cell="gru",
    )  # fmt: skip
    assert Architecture.from_json(architecture.to_json()) == architecture


@pytest.mark.parametrize(
    ("policy_kwargs", "says"),
    [
        ({"net_arch": {"front": [8]}}, "'front' is for policies with memory"),
        ({"enable_critic_lstm": False}, "enable_critic_lstm=False is for policies with memory"),
        ({"mean_activation": "relu"}, "mean_activation must be 'linear' or 'tanh', got 'relu'"),
        ({"std_activation": "relu"}, "std_activation must be 'exp' or 'softplus', got 'relu'"),
        ({"output_init_scale": 0.0}, "output_init_scale must be a positive number, got 0.0"),
    ],
)
def test_what_makes_no_sense_is_refused(policy_kwargs, says):
    with pytest.raises(ValueError, match=says):
        Architecture.from_policy_kwargs(policy_kwargs)


@pytest.mark.parametrize(
    "space",
    [spaces.Box(-2, 2, (1,), np.float32), spaces.Box(-np.inf, np.inf, (1,)), spaces.Discrete(2)],
    ids=str,
)
def test_tanh_means_are_refused_where_they_could_not_reach_every_action(space):
    with pytest.raises(SpaceError, match=r"between -1 and 1.*RescaleAction"):
        Architecture(mean_activation="tanh").check_actions(space)


def test_softplus_is_refused_where_there_is_no_deviation():
    with pytest.raises(SpaceError, match="std_activation needs a Box"):
        Architecture(std_activation="softplus").check_actions(spaces.Discrete(2))


class UnitActions(CountingEnv):
    action_space = spaces.Box(-1, 1, (1,), np.float32)


@pytest.mark.parametrize("policy", ["MlpPolicy", "MlpGruPolicy"])
def test_training_saving_and_acting(policy, tmp_path, monkeypatch):
    monkeypatch.setattr(learner, "JIT_COMPILE", False)
    kwargs = {"net_arch": {"pi": [], "vf": [6]}, **GAUSSIAN}
    if policy == "MlpGruPolicy":
        kwargs["net_arch"]["front"] = [5]
        kwargs.update(recurrent_size=4, enable_critic_lstm=False)
    settings = {"n_steps": 10, "n_epochs": 1, "sequence_length": 4, "objective": "kl_penalty"}
    agent = BatchPPO(policy, UnitActions(0), seed=0, policy_kwargs=kwargs, **settings)
    if policy == "MlpGruPolicy":  # a preset trains the other one
        agent.learn(20)
    agent.save(tmp_path / "model")
    stored = load_policy(tmp_path / "model.zip")
    again = BatchPPO.load(tmp_path / "model.zip")
    observations = np.stack([agent.observation_space.sample() for _ in range(3)])
    expected, _ = agent.predict(observations, deterministic=True)
    for loaded in (stored, again):
        assert loaded.predict(observations, deterministic=True)[0] == pytest.approx(expected)
