"""One library with one setting, in a process of its own, told what to do line by line.

    python ppo_candidate.py CANDIDATE '<setting as JSON>'

Started by the benchmarks of training with the interpreter that has the library. Reads commands
from standard input, `WORK COUNT`, does that much and answers with a line of JSON. Between two
commands it waits and takes no processor time, so that others can be measured meanwhile.

Work is `train` (iterations), `update` (updates from the last rollout, repeated), `predict` (calls
for one observation) and, where PyTorch computes, `threads` (how many it may use from now on).
"""

import argparse
import functools
import json
import os
import sys
import time
import warnings

from ppo_settings import OURS, Setting

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("JAX_PLATFORMS", "cpu")


class Candidate:
    """What all libraries have in common.

    Args:
        model: the agent.
        rows: of a rollout.
    """

    def __init__(self, model, rows):
        self.model = model
        self.rows = rows

    def train(self, iterations):
        before = self.model.num_timesteps
        self.model.learn(iterations * self.rows, reset_num_timesteps=before == 0)
        return self.model.num_timesteps - before

    def predict(self, count):
        observation = self.model.observation_space.sample()
        state = None
        for _ in range(count):
            _, state = self.model.predict(observation, state, deterministic=True)
        return count

    def close(self):
        self.model.get_env().close()


class Ours(Candidate):
    """BatchPPO."""

    def __init__(self, setting):
        from gymnasium.vector import AutoresetMode

        import batchgym
        from batchppo import BatchPPO

        # What BatchPPO does with an id: no rows that are only resets, and this process steps a
        # share of the environments that Gymnasium brings.
        env = batchgym.make_vec(
            setting.env_id,
            setting.num_envs,
            owner_steps=None,
            autoreset_mode=AutoresetMode.SAME_STEP,
            **setting.env_kwargs,
        )
        agent = BatchPPO(
            setting.policy,
            env,
            n_steps=setting.n_steps,
            batch_size=setting.batch_size,
            n_epochs=setting.n_epochs,
            policy_kwargs=setting.policy_kwargs,
            normalize_observations=False,
            normalize_rewards=False,
            device="cpu",
            seed=0,
        )
        super().__init__(agent, setting.rows)
        self._last = None
        self._keep_rollouts()

    def _keep_rollouts(self):
        """The last rollout is kept, so that an update can be repeated by itself."""
        learner = self.model._learner
        learn = learner.learn

        def keeping(rollout, *arguments, **keywords):
            self._last = functools.partial(learn, rollout, *arguments, **keywords)
            return self._last()

        learner.learn = keeping

    def update(self, count):
        for _ in range(count):
            self._last()
        return count


class Peer(Candidate):
    """Stable-Baselines3, SBX or sb3-contrib: they share an interface."""

    def __init__(self, name, setting):
        from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

        library, kind = name.split("-")
        env_kwargs = dict(setting.env_kwargs)
        if setting.env_id == "Images-v0":
            env_kwargs["channels_first"] = True
        make = functools.partial(_make_env, setting.env_id, env_kwargs)
        vec_env = {"dummy": DummyVecEnv, "subproc": SubprocVecEnv}[kind]
        model = _algorithm(library)(
            setting.policy,
            vec_env([make] * setting.num_envs),
            n_steps=setting.n_steps,
            batch_size=setting.batch_size,
            n_epochs=setting.n_epochs,
            policy_kwargs=setting.policy_kwargs,
            device="cpu",
            seed=0,
        )
        super().__init__(model, setting.rows)

    def update(self, count):
        for _ in range(count):
            self.model.train()
        return count

    def threads(self, count):
        import torch

        torch.set_num_threads(count)
        return count


def _algorithm(library):
    if library == "sb3":
        from stable_baselines3 import PPO
    elif library == "sbx":
        from sbx import PPO
    else:
        from sb3_contrib import RecurrentPPO

        return RecurrentPPO
    return PPO


def _make_env(env_id, env_kwargs):
    """With the Monitor that Stable-Baselines3's own `make_vec_env` puts around an environment."""
    import cheap_envs  # noqa: F401 - registers the environments in a worker too
    import gymnasium as gym
    from stable_baselines3.common.monitor import Monitor

    return Monitor(gym.make(env_id, **env_kwargs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("candidate")
    parser.add_argument("setting")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    # Whatever libraries print goes to standard error: standard output is for the answers alone.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(document):
        answers.write(json.dumps(document) + "\n")
        answers.flush()

    setting = Setting(**json.loads(arguments.setting))
    name = arguments.candidate
    candidate = Ours(setting) if name == OURS else Peer(name, setting)
    answer({"ready": True})
    for line in sys.stdin:
        work, count = line.split()
        began = time.perf_counter()
        done = getattr(candidate, work)(int(count))
        answer({"done": done, "seconds": time.perf_counter() - began})
    candidate.close()


if __name__ == "__main__":
    main()
