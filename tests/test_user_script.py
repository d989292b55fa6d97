"""A user's own script, as it is written in the wild: no guard, everything at the top level."""

import subprocess
import sys
import textwrap

SCRIPT = """
    import tensorflow as tf
    import gymnasium, numpy as np
    import batchgym
    from batchppo import BatchPPO, evaluate_policy

    SCALE = np.float32(0.5)  # a global that the class needs

    class Corridor(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.position = 0
            return np.zeros(1, np.float32), {}

        def step(self, action):
            self.position += 1 if action else -1
            done = abs(self.position) == 3
            observation = np.array([self.position / 3], np.float32)
            return observation, float(done) * np.sign(self.position) - 0.01 * SCALE, done, False, {}

        def modules(self):
            import sys
            return [name for name in ("tensorflow", "keras", "batchppo") if name in sys.modules]

    env = batchgym.ProcessVectorEnv([Corridor] * 8, num_workers=4)
    print("workers have", env.call("modules"), "and there are", len(set(env.processes)))
    agent = BatchPPO("MlpPolicy", env, n_steps=32, learning_rate=3e-3, seed=0).learn(4096)
    print("mean", evaluate_policy(agent, Corridor(), 5)[0])
    env.close()
"""


def test_no_guard_own_class_four_workers_and_no_tensorflow_in_them(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"workers have {([],) * 8} and there are 4"
    assert lines[1].startswith("mean 0.98")  # three steps to the right
    assert len(lines) == 2
