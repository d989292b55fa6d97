"""Histograms of updates, from the agent to TensorBoard's files."""

import csv

import numpy as np
import pytest
import tensorflow as tf
from ppo_envs import CueEnv
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from batchppo import BatchPPO, configure_logger, learner

ROLLOUT = {"action", "advantage", "log_prob", "mode", "observation", "return", "value"}
TAGS = {
    *(f"rollout/{name}" for name in ROLLOUT),
    *(f"losses/{name}" for name in ("approx_kl", "entropy", "policy_loss", "value_loss")),
    *(
        f"{group}/{part}"
        for group in ("gradients", "weights")
        for part in ("all", "policy", "value")
    ),
}


@pytest.fixture(autouse=True)
def _plain_graph(monkeypatch):
    monkeypatch.setattr(learner, "JIT_COMPILE", False)


class Spy:
    """A logger that keeps the figures of each iteration."""

    def __init__(self):
        self.iterations = [{}]

    def record(self, key, value):
        self.iterations[-1][key] = value

    def record_mean(self, key, value):
        self.record(key, value)

    def dump(self, step):
        self.iterations.append({})


def trained(policy="MlpPolicy", **arguments):
    settings = {"n_steps": 16, "batch_size": 8, "n_epochs": 1, "seed": 0, **arguments}
    kwargs = {"net_arch": [4]}
    if policy != "MlpPolicy":
        kwargs["recurrent_size"] = 3
    agent = BatchPPO(policy, CueEnv(), policy_kwargs=kwargs, **settings)
    agent.set_logger(Spy())
    agent.learn(40)
    return agent, agent.logger.iterations[:-1], agent.get_parameters()["weights"]


@pytest.fixture(scope="module")
def watched():
    """An agent that was trained with histograms, its figures, and its weights at that time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learner, "JIT_COMPILE", False)
        return trained(log_histograms=True)


def arrays_of(figures):
    return {key: value for key, value in figures.items() if isinstance(value, np.ndarray)}


@pytest.mark.parametrize(
    "policy", ["MlpPolicy", pytest.param("MlpLstmPolicy", marks=pytest.mark.slow)]
)
def test_every_row_and_weight_is_counted_once_and_no_padding(policy, watched):
    """Rollouts of 16, 16 and 8 rows, as sequences of 5 where the policy remembers."""
    _, iterations, weights = (
        trained(policy, log_histograms=True, sequence_length=5)
        if policy == "MlpLstmPolicy"
        else watched
    )
    assert [len(figures["rollout/action"]) for figures in iterations] == [16, 16, 8]
    for figures in iterations:
        arrays = arrays_of(figures)
        assert set(arrays) == TAGS
        rows = {len(arrays[tag]) for tag in TAGS if tag.startswith(("rollout", "losses"))}
        assert len(rows) == 1
    count = sum(array.size for array in weights.values())
    critic = sum(array.size for name, array in weights.items() if name.startswith("critic"))
    for group in ("gradients", "weights"):
        sizes = [iterations[-1][f"{group}/{part}"].size for part in ("all", "policy", "value")]
        assert sizes == [count, count - critic, critic]
    assert np.sort(iterations[-1]["weights/all"]) == pytest.approx(
        np.sort(np.concatenate([array.ravel() for array in weights.values()]))
    )


def test_histograms_are_of_the_figures_that_are_logged():
    """One minibatch that has no effect: the means of the histograms are the logged figures."""
    _, iterations, _ = trained(log_histograms=True, batch_size=16, learning_rate=0.0)
    figures = iterations[0]
    assert figures["losses/value_loss"].mean() == pytest.approx(figures["train/value_loss"])
    assert figures["losses/entropy"].mean() == pytest.approx(-figures["train/entropy_loss"])
    assert figures["losses/approx_kl"] == pytest.approx(np.zeros(16), abs=1e-6)


def test_the_gradient_is_that_of_the_first_minibatch(watched, monkeypatch):
    agent, _, _ = watched
    histograms = agent._learner._histograms
    updater = agent._learner.updater
    collector = agent._collector
    rollout = collector.collect(0, 16, goal=10**9)
    seen = {}
    original = histograms.of

    def keep(*arguments):
        seen["arguments"] = arguments
        seen["result"] = original(*arguments)
        return seen["result"]

    monkeypatch.setattr(histograms, "of", keep)
    agent._learner.learn(rollout, 1.0)
    batch, minibatches, coefficients = seen["arguments"]
    first = tf.nest.map_structure(lambda column: tf.constant(column[minibatches.rows[0]]), batch)
    gradients, _ = updater.gradients(first, minibatches.weights[0], coefficients)
    expected = np.concatenate([gradient.numpy().ravel() for gradient in gradients])
    assert np.abs(expected).max() > 0
    assert seen["result"]["gradients/all"] == pytest.approx(expected, abs=1e-6)
    assert seen["result"]["gradients/norm"] == pytest.approx(np.sqrt(np.square(expected).sum()))


def test_they_change_nothing_and_are_off_unless_asked_for(watched):
    _, iterations, weights = trained()
    assert arrays_of(iterations[0]) == {}
    for name, array in watched[2].items():
        assert weights[name].tolist() == array.tolist()


def test_tensorboard_gets_arrays_and_others_leave_them_out(tmp_path):
    logger = configure_logger(tmp_path, ["csv", "json", "log", "tensorboard"])
    logger.record("weights/all", np.array([[1.0, 2.0], [3.0, 6.0]]))
    logger.record("loss", np.float32(0.5))
    logger.record("single", np.array(2.0))
    logger.dump(7)
    logger.close()
    events = EventAccumulator(str(tmp_path), size_guidance={"tensors": 0}).Reload()
    assert set(events.Tags()["tensors"]) == {"weights/all", "loss", "single"}
    (event,) = events.Tensors("weights/all")
    assert event.step == 7
    buckets = np.array(
        event.tensor_proto.float_val or np.frombuffer(event.tensor_proto.tensor_content)
    ).reshape(-1, 3)
    assert buckets[:, 2].sum() == 4
    assert (buckets[0, 0], buckets[-1, 1]) == (1.0, 6.0)
    with (tmp_path / "progress.csv").open(newline="") as file:
        assert [sorted(row) for row in csv.DictReader(file)] == [["loss", "single"]]
    for name in ("progress.json", "log.txt"):
        assert "weights" not in (tmp_path / name).read_text()
