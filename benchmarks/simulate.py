"""What does fusing policy and environment into one TensorFlow operation gain?

    python benchmarks/simulate.py [--rounds 15] [--only simulate|acting]

Two tables. `results/simulate.csv`: a step of `batchppo.simulate` against a step of a loop in
Python that calls the same tf.function, in an environment that costs nothing and in CartPole.
`results/acting.csv`: how the agent's own policies act during training, per step: in NumPy, by a
call of a tf.function, and in the loop that lasts a whole rollout.

Ways are measured in turns; figures are medians over the rounds, ratios medians of the rounds'
ratios. A row is written as it is ready; rows that are there already are not run again.
"""

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import gymnasium
import keras
import numpy as np
import tensorflow as tf
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from result_rows import append, read

from batchppo import InGraphBatchEnv, simulate
from batchppo.actions import action_distribution
from batchppo.architecture import Architecture
from batchppo.graph_network import GraphNetwork
from batchppo.policies import policy_encoder
from batchppo.recurrent_acting import numpy_network
from batchppo.recurrent_networks import make_network

RESULTS = Path(__file__).parent / "results"
VECTOR = spaces.Box(-np.inf, np.inf, (4,), np.float32)
PICTURE = spaces.Box(0, 255, (84, 84, 4), np.uint8)
ACTIONS = spaces.Discrete(2)
WAYS = ("numpy", "call", "loop")


class FreeEnv(VectorEnv):
    """Always returns the same arrays: its steps cost nothing."""

    def __init__(self, num_envs, observation_space):
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space = observation_space
        self.single_action_space = ACTIONS
        self.observation_space = batch_space(observation_space, num_envs)
        self.action_space = batch_space(ACTIONS, num_envs)
        observation = np.zeros(self.observation_space.shape, observation_space.dtype)
        never = np.zeros(num_envs, bool)
        self._result = (observation, np.zeros(num_envs), never, never, {})

    def reset(self, *, seed=None, options=None):
        return self._result[0], {}

    def step(self, actions):
        return self._result


class Policy:
    """A policy for two actions: hidden layers in front of logits, with a GRU if it has a size."""

    def __init__(self, layers, memory=0):
        self.layers = layers
        self.cell = keras.layers.GRUCell(memory) if memory else None
        self.logits = keras.layers.Dense(2)
        self.memory = memory

    def __call__(self, observation, state=None):
        """Returns random actions, and the next states of a policy with memory."""
        features = tf.cast(observation, tf.float32)
        for layer in self.layers:
            features = layer(features)
        if self.cell is not None:
            features, (state,) = self.cell(features, [state])
        logits = self.logits(features)
        noise = -tf.math.log(-tf.math.log(tf.random.uniform(tf.shape(logits), 1e-9)))
        action = tf.argmax(logits + noise, axis=-1)
        return action if self.cell is None else (action, state)


def mlp():
    """Returns a policy with two tanh layers of 64."""
    return Policy([keras.layers.Dense(64, activation="tanh") for _ in range(2)])


def gru():
    """Returns a policy with 128 units of memory."""
    return Policy([], memory=128)


def cnn():
    """Returns the convolutions of Mnih et al. 2015."""
    sizes = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
    layers = [keras.layers.Conv2D(*size, activation="relu") for size in sizes]
    return Policy([*layers, keras.layers.Flatten(), keras.layers.Dense(512, activation="relu")])


def unfused(env, function, state, steps):
    """Plays `steps` steps with one call of a tf.function each, and keeps what simulate keeps."""
    observation, _ = env.reset()
    observations = np.empty((steps, *observation.shape), observation.dtype)
    actions = np.empty((steps, env.num_envs), np.int64)
    rewards = np.empty((steps, env.num_envs), np.float32)
    terminated, truncated = np.empty((2, steps, env.num_envs), bool)
    for t in range(steps):
        observations[t] = observation
        if state is None:
            action = function(tf.constant(observation))
        else:
            action, state = function(tf.constant(observation), state)
        actions[t] = action.numpy()
        observation, rewards[t], terminated[t], truncated[t], _ = env.step(actions[t])


def in_turns(ways, steps, rounds):
    """Returns microseconds per step of each way, arrays of `rounds` numbers, by name."""
    for run in ways.values():  # compiles
        run()
    taken = {name: [] for name in ways}
    for _ in range(rounds):
        for name, run in ways.items():
            began = time.perf_counter()
            run()
            taken[name].append((time.perf_counter() - began) / steps * 1e6)
    return {name: np.array(times) for name, times in taken.items()}


def simulate_row(environment, kind, num_envs, rounds):
    """Measures fused against unfused."""
    if environment == "CartPole-v1":
        env = gymnasium.make_vec(environment, num_envs, vectorization_mode="sync")
    else:
        env = FreeEnv(num_envs, PICTURE if kind == "CNN" else VECTOR)
    policy = {"MLP 64-64": mlp, "GRU 128": gru, "CNN": cnn}[kind]()
    steps = 50 if kind == "CNN" else 1000
    state = tf.zeros((num_envs, policy.memory)) if policy.memory else None
    function, fused_env = tf.function(policy), InGraphBatchEnv(env)
    times = in_turns(
        {
            "fused": lambda: simulate(fused_env, policy, steps, state),
            "unfused": lambda: unfused(env, function, state, steps),
        },
        steps,
        rounds,
    )
    env.close()
    return {
        "environment": environment,
        "policy": kind,
        "num_envs": num_envs,
        "unfused_us": f"{np.median(times['unfused']):.0f}",
        "fused_us": f"{np.median(times['fused']):.0f}",
        "times_faster": f"{np.median(times['unfused'] / times['fused']):.2f}",
        "rounds": rounds,
    }


def acting_row(policy, num_envs, rounds):
    """Measures the ways in which one of the agent's policies can act."""
    space = PICTURE if policy.startswith("Cnn") else VECTOR
    encoder = policy_encoder(policy, space, ACTIONS)
    architecture = Architecture.from_policy_kwargs(None, policy)
    network = make_network(encoder, action_distribution(ACTIONS), architecture, seed=0)
    graph = GraphNetwork(network, encoder, "/CPU:0")
    inputs = encoder.encode(np.zeros((num_envs, *space.shape), space.dtype))
    if graph.state_size:
        inputs["episode_start"] = np.zeros(num_envs, bool)
    steps = 50 if encoder.images else 500

    def repeat(call):
        state = np.zeros((num_envs, graph.state_size), np.float32) if graph.state_size else None
        for _ in range(steps):
            _, state = call(inputs, state)

    def loop():
        with graph.looping() as looping:
            repeat(looping)

    ways = {"call": lambda: repeat(graph), "loop": loop}
    if not encoder.images:
        dense = numpy_network(network.weights(), architecture)
        ways["numpy"] = lambda: repeat(dense)
    times = in_turns(ways, steps, rounds)
    row = {"policy": policy, "num_envs": num_envs}
    row.update({f"{n}_us": f"{np.median(times[n]):.0f}" if n in times else "" for n in WAYS})
    row["loop_times_faster_than_call"] = f"{np.median(times['call'] / times['loop']):.2f}"
    return row


def main():
    """Runs what is missing, then prints all rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", choices=("simulate", "acting"))
    arguments = parser.parse_args()
    simulated = [
        *((env, kind, n) for env in ("free", "CartPole-v1") for kind in ("MLP 64-64", "GRU 128")
          for n in (8, 64)),
        ("free", "CNN", 8),
    ]  # fmt: skip
    acted = [(p, n) for p in ("MlpLstmPolicy", "MlpGruPolicy", "MlpPolicy") for n in (8, 64)]
    acted.append(("CnnPolicy", 8))
    tables = {"simulate": (simulate_row, simulated), "acting": (acting_row, acted)}
    for name, (measure, cases) in tables.items():
        path = RESULTS / f"{name}.csv"
        done = {tuple(row.values())[: len(cases[0])] for row in read(path)}
        for case in cases:
            if arguments.only in (None, name) and tuple(map(str, case)) not in done:
                append(path, measure(*case, arguments.rounds))
        for row in read(path):
            print("  ".join(f"{column} {value}" for column, value in row.items()))


if __name__ == "__main__":
    main()
