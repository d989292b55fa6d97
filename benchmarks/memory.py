"""Does memory help? CartPole without velocities, with recurrent policies and without.

    python benchmarks/memory.py [--policies MlpLstmPolicy MlpGruPolicy MlpPolicy] [--seeds 0 1 2]

A policy that sees positions alone has to remember the last ones to know where the pole is going.
Prints a table and writes `results/memory.csv`, a row per run as it ends; rows that are there
already are not run again.
"""

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import gymnasium
import numpy as np
from gymnasium import spaces
from result_rows import append, read

import batchgym
from batchppo import BatchPPO, evaluate_policy

RESULTS = Path(__file__).parent / "results" / "memory.csv"
COLUMNS = ("policy", "seed", "steps", "seconds", "mean", "std")
STEPS = 300_000
EPISODES = 20
SETTINGS = {
    "n_steps": 128,
    "batch_size": 256,
    "n_epochs": 10,
    "sequence_length": 16,
    "learning_rate": "linear:1e-3",
    "clip_range": "linear:0.2",
    "gamma": 0.98,
    "gae_lambda": 0.8,
}


class PositionsOnly(gymnasium.ObservationWrapper):
    """CartPole's cart position and pole angle, without their velocities."""

    def __init__(self, env):
        super().__init__(env)
        box = env.observation_space
        self.observation_space = spaces.Box(box.low[[0, 2]], box.high[[0, 2]], dtype=np.float32)

    def observation(self, observation):
        return observation[[0, 2]]


def run(policy, seed):
    """Trains one policy with one seed and returns its row."""
    env = batchgym.make_vec("CartPole-v1", 8, wrappers=[PositionsOnly])
    kwargs = {"recurrent_size": 64} if policy != "MlpPolicy" else {}
    began = time.perf_counter()
    agent = BatchPPO(policy, env, seed=seed, policy_kwargs=kwargs, **SETTINGS).learn(STEPS)
    seconds = time.perf_counter() - began
    env.close()
    held_out = batchgym.make_vec("CartPole-v1", EPISODES, wrappers=[PositionsOnly])
    mean, std = evaluate_policy(agent, held_out, EPISODES, seed=10_000)
    held_out.close()
    numbers = (agent.num_timesteps, f"{seconds:.1f}", f"{mean:.2f}", f"{std:.2f}")
    return dict(zip(COLUMNS, (policy, seed, *numbers), strict=True))


def main():
    """Runs what is missing, then prints all rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    policies = ["MlpLstmPolicy", "MlpGruPolicy", "MlpPolicy"]
    parser.add_argument("--policies", nargs="+", default=policies, choices=policies)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    arguments = parser.parse_args()
    done = {(row["policy"], int(row["seed"])) for row in read(RESULTS)}
    for seed in arguments.seeds:
        for policy in arguments.policies:
            if (policy, seed) not in done:
                append(RESULTS, run(policy, seed))
    for row in read(RESULTS):
        print("  ".join(f"{name} {row[name]}" for name in COLUMNS))


if __name__ == "__main__":
    main()
