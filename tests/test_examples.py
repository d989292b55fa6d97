"""The examples do what they promise."""

import re
import runpy
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

EXAMPLES = Path(__file__).parent.parent / "examples"


def load(name):
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def mean_length(agent, episodes=20):
    """Plays CartPole with the likeliest actions; no episode is longer than 500 steps."""
    lengths = []
    env = gymnasium.make("CartPole-v1")
    act = tf.function(lambda rows: tf.argmax(agent.actor(rows), axis=-1))
    for episode in range(episodes):
        observation, _ = env.reset(seed=10_000 + episode)
        done, length = False, 0
        while not done:
            action = int(act(observation[None])[0])
            observation, _, terminated, truncated, _ = env.step(action)
            done, length = terminated or truncated, length + 1
        lengths.append(length)
    return np.mean(lengths)


def test_a2c_computes_returns_and_stays_short():
    source = (EXAMPLES / "a2c_cartpole.py").read_text()
    assert len(source.splitlines()) < 100
    example = load("a2c_cartpole")
    discount = example["DISCOUNT"]
    reward, value = tf.constant([[1.0], [2.0], [4.0]]), tf.constant([[10.0], [0.0], [30.0]])
    cut = tf.constant([[False], [True], [False]])
    returns = example["n_step_returns"](reward, value, cut)
    last = 4 + discount * 30
    np.testing.assert_allclose(returns[:, 0], [1 + discount * 2, 2, last], rtol=1e-6)


def test_a2c_runs():
    lines = []
    load("a2c_cartpole")["train"](iterations=100, steps=2, num_envs=2, report=lines.append)
    assert len(lines) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a2c_learns_cart_pole(seed):
    agent = load("a2c_cartpole")["train"](seed=seed, report=lambda _: None)
    assert mean_length(agent) > 300


def test_what_the_documentation_shows_runs():
    text = (EXAMPLES.parent / "docs" / "in_graph.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 4
    names = {}
    for block in blocks:
        exec(compile(block, "in_graph.md", "exec"), names)
    assert names["trajectory"].state.shape == (8, 32)
    assert names["step"].reward.shape == (8,)
