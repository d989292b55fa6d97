"""CartPole by Stable-Baselines3 with the RL Zoo's hyperparameters; run by `ppo_learned.py`.

    python ppo_zoo_cartpole.py SEED GOAL

Ends when an evaluation of 20 episodes has the mean return GOAL; 0 for no evaluations.
"""

import sys
import tempfile
from pathlib import Path

from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import EvalCallback, StopTrainingOnRewardThreshold
from stable_baselines3.common.env_util import make_vec_env

NUM_ENVS = 8


def main():
    seed, goal = int(sys.argv[1]), float(sys.argv[2])
    model = PPO(
        "MlpPolicy",
        make_vec_env("CartPole-v1", NUM_ENVS, seed=seed),
        n_steps=32,
        batch_size=256,
        n_epochs=20,
        gamma=0.98,
        gae_lambda=0.8,
        ent_coef=0.0,
        learning_rate=lambda remaining: remaining * 1e-3,
        clip_range=lambda remaining: remaining * 0.2,
        seed=seed,
        device="cpu",
    )
    callback = None
    if goal:
        callback = EvalCallback(
            make_vec_env("CartPole-v1", NUM_ENVS, seed=seed + 1000),
            callback_on_new_best=StopTrainingOnRewardThreshold(goal, verbose=0),
            n_eval_episodes=20,
            eval_freq=10_000 // NUM_ENVS,
            verbose=0,
        )
    model.learn(100_000, callback)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")


if __name__ == "__main__":
    main()
