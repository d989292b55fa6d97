"""Training takes no more memory the longer it lasts."""

import gc

import psutil
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from ppo_envs import CountingEnv, PictureEnv, RecallEnv

from batchppo import BatchPPO
from batchppo.callbacks import BaseCallback

MIB = 1 << 20


class Memory(BaseCallback):
    """Measures the process after each rollout."""

    def __init__(self):
        super().__init__()
        self.used = []

    def _on_rollout_end(self):
        gc.collect()
        self.used.append(psutil.Process().memory_info().rss)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "make", "iterations"),
    [
        ("MlpPolicy", CountingEnv, 300),
        ("CnnPolicy", PictureEnv, 60),
        ("MlpLstmPolicy", RecallEnv, 60),
    ],
)
def test_memory_is_constant_from_the_fifth_iteration_on(policy, make, iterations):
    env = SyncVectorEnv([make] * 4, autoreset_mode=AutoresetMode.SAME_STEP)
    kwargs = {"features_dim": 16, "recurrent_size": 16}
    agent = BatchPPO(policy, env, n_steps=16, batch_size=32, policy_kwargs=kwargs, seed=0)
    memory = Memory()
    agent.learn(64 * iterations, callback=memory)
    after_five, last = max(memory.used[4:10]), max(memory.used[-10:])
    assert last - after_five < 8 * MIB
