"""Policies with memory: NumPy against TensorFlow, sequences against single steps."""

import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from ppo_envs import CountingEnv, MaskedEnv

from batchppo import BatchPPO, learner
from batchppo.actions import action_distribution
from batchppo.architecture import Architecture
from batchppo.observations import ObservationEncoder
from batchppo.recurrent_acting import RecurrentNetwork
from batchppo.recurrent_networks import RecurrentActorCritic
from batchppo.weight_shapes import weight_shapes

ENCODER = ObservationEncoder(spaces.Box(-1, 1, (3,), np.float32))
DISTRIBUTION = action_distribution(spaces.Box(-1, 1, (2,), np.float32))


@pytest.fixture(autouse=True)
def _plain_graph(monkeypatch):
    monkeypatch.setattr(learner, "JIT_COMPILE", False)


def make_network(cell, seed=0):
    architecture = Architecture(pi=(6,), vf=(5,), cell=cell, recurrent_size=4)
    return RecurrentActorCritic(ENCODER, DISTRIBUTION, architecture, seed), architecture


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_numpy_and_tensorflow_step_alike(cell):
    network, architecture = make_network(cell)
    assert {n: w.shape for n, w in network.weights().items()} == weight_shapes(
        ENCODER, DISTRIBUTION, architecture
    )
    acting = RecurrentNetwork(cell, network.weights(), "tanh")
    assert acting.state_size == network.state_size
    rng = np.random.default_rng(0)
    state = rng.standard_normal((5, network.state_size), np.float32)
    starts = np.array([True, False, True, False, False])
    for _ in range(4):
        rows = {"vector": rng.standard_normal((5, 3), np.float32), "episode_start": starts}
        expected = network.act({**rows, "actor_state": tf.constant(state)})
        parameters, state = acting(rows, state)
        assert parameters == pytest.approx(expected[0].numpy(), abs=1e-5)
        assert state == pytest.approx(expected[1].numpy(), abs=1e-5)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_sequence_is_its_steps_one_by_one_with_resets_inside(cell):
    network, _ = make_network(cell)
    rng = np.random.default_rng(1)
    inputs = {
        "vector": rng.standard_normal((2, 7, 3), np.float32),
        "episode_start": rng.random((2, 7)) < 0.3,
        "actor_state": rng.standard_normal((2, network.state_size), np.float32),
        "critic_state": rng.standard_normal((2, network.state_size), np.float32),
    }
    parameters, values, states = network.sequences({k: tf.constant(v) for k, v in inputs.items()})
    parameters, values = parameters.numpy().reshape(2, 7, -1), values.numpy().reshape(2, 7)
    actor_state, critic_state = inputs["actor_state"], inputs["critic_state"]
    for t in range(7):
        row = {"vector": inputs["vector"][:, t], "episode_start": inputs["episode_start"][:, t]}
        got, actor_state = network.act({**row, "actor_state": tf.constant(actor_state)})
        assert parameters[:, t] == pytest.approx(got.numpy(), abs=1e-5)
        assert states[0].numpy()[:, t] == pytest.approx(actor_state.numpy(), abs=1e-5)
        fresh = np.where(row["episode_start"][:, None], np.float32(0), critic_state)
        value = network.values({**row, "critic_state": tf.constant(fresh)})
        assert values[:, t] == pytest.approx(value.numpy(), abs=1e-5)
        critic_state = states[1].numpy()[:, t]


def agent(mode=AutoresetMode.SAME_STEP, make=CountingEnv, **arguments):
    env = SyncVectorEnv([lambda i=i: make(i) for i in range(3)], autoreset_mode=mode)
    kwargs = {"net_arch": [4], "recurrent_size": 4}
    settings = {"n_steps": 10, "sequence_length": 4, "n_epochs": 1, "seed": 0}
    return BatchPPO("MlpLstmPolicy", env, policy_kwargs=kwargs, **{**settings, **arguments})


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_the_ratio_is_1_before_the_first_step(mode):
    """Acting, evaluating and learning agree, with T no multiple of the sequences' length."""
    trained = agent(mode, batch_size=1000)
    for _ in range(3):
        collector = trained._collector
        trained.learn(30, reset_num_timesteps=False)
        rollout = collector.collect(0, 10, goal=10**9)
        evaluation = trained._learner._layout.evaluate(rollout)
        acted = replayed(trained, rollout)
        assert evaluation.parameters[rollout.valid] == pytest.approx(acted[rollout.valid], abs=1e-5)


def replayed(trained, rollout):
    """The parameters that acting saw, step by step from the rollout's first state."""
    state, result = rollout.actor_state, []
    for t in range(rollout.steps):
        inputs = {name: array[t] for name, array in rollout.inputs.items()}
        parameters, state = trained.policy.parameters(inputs, state)
        result.append(parameters)
    return np.stack(result)


@pytest.mark.parametrize("batch_size", [1000, 8])
def test_learning_sees_the_same_distributions_as_acting(batch_size):
    trained = agent(batch_size=batch_size, learning_rate=0.0, n_epochs=2)
    figures = {}
    trained.set_logger(Spy(figures))
    trained.learn(90)
    assert figures["train/approx_kl"] == pytest.approx(0.0, abs=1e-6)
    assert figures["train/clip_fraction"] == 0.0


class Spy:
    """A logger that keeps the last figures."""

    def __init__(self, figures):
        self.figures = figures

    def record(self, key, value):
        self.figures[key] = value

    record_mean = record

    def dump(self, step):
        pass


def test_values_of_final_observations_follow_on_what_went_before():
    trained = agent()
    collector = trained._collector
    trained.learn(30)
    critic_state = trained._learner._layout._critic_state.copy()
    rollout = collector.collect(30, 10, goal=10**9)
    evaluation = trained._learner._layout.evaluate(rollout)
    network = trained._learner.network
    finals = iter(range(len(next(iter((rollout.final_inputs or {"": []}).values())))))
    checked = 0
    for t in range(10):
        row = {name: tf.constant(array[t]) for name, array in rollout.inputs.items()}
        starts = row["episode_start"]
        features = network.features(row)[1]
        cell = network._critic_cell
        critic_state = cell.step(cell.gates(features), tf.constant(critic_state), starts).numpy()
        for i in np.flatnonzero(rollout.truncated[t]):
            k = next(finals)
            final = {"vector": tf.constant(rollout.final_inputs["vector"][k : k + 1])}
            value = network.values({**final, "critic_state": tf.constant(critic_state[i : i + 1])})
            assert evaluation.next_values[t, i] == pytest.approx(float(value[0]), abs=1e-5)
            checked += 1
    assert checked >= 2


def test_state_is_carried_across_predict_calls_and_forgotten_at_starts():
    trained = agent()
    observation = np.array([[0.0, 1.0, 2.0]] * 2, np.float32)
    _, first = trained.predict(observation)
    _, second = trained.predict(observation, state=first)
    assert first.shape == (2, 8)
    assert not np.array_equal(first, second)
    _, again = trained.predict(observation, state=second, episode_start=[True, False])
    assert np.array_equal(again[0], first[0])
    assert not np.array_equal(again[1], first[1])
    action, state = trained.predict(observation[0])
    assert np.shape(action) == ()
    assert state.shape == (1, 8)


@pytest.mark.parametrize(
    ("state", "match"), [(np.zeros((3, 8)), r"shape \(3, 8\), expected \(2, 8\)"), ("x", "shape")]
)
def test_a_state_that_does_not_fit_is_refused(state, match):
    with pytest.raises(ValueError, match=match):
        agent().predict(np.zeros((2, 3)), state=state)


def test_determinism_and_resume(tmp_path):
    one, two = (agent(make=lambda i: MaskedEnv()).learn(100) for _ in range(2))
    ours, theirs = (a._learner.network.weights() for a in (one, two))
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)
    one.save(tmp_path / "model")
    envs = [SyncVectorEnv([MaskedEnv] * 5) for _ in range(2)]
    resumed = [
        BatchPPO.load(tmp_path / "model", env).learn(90, reset_num_timesteps=False) for env in envs
    ]
    ours, theirs = (a._learner.network.weights() for a in resumed)
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_compiling_ahead_leaves_nothing_in_the_values_memory(monkeypatch):
    ahead = agent()
    later = agent()
    monkeypatch.setattr(later._learner, "warm_up", lambda *arguments: None)
    ours, theirs = (a.learn(60)._learner.network.weights() for a in (ahead, later))
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)
