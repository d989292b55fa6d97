"""Model files that earlier versions wrote still load, act as they did, and learn on.

`golden/schema_<n>_<policy>.zip` was written by the first version with schema n, and
`golden/actions.json` holds what its model answered. To add the files of a new schema:
`python tests/test_golden_models.py`.
"""

import json
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from batchppo import BatchPPO, load_policy
from batchppo.model_file import SCHEMA

GOLDEN = Path(__file__).parent / "golden"
ENV_IDS = {"MlpPolicy": "CartPole-v1", "MlpLstmPolicy": "Pendulum-v1"}
MODELS = sorted(GOLDEN.glob("schema_*.zip"))


def observations(space):
    rng = np.random.default_rng(0)
    return rng.uniform(-1.0, 1.0, (5, *space.shape)).astype(space.dtype)


def answers(policy):
    """Returns two steps' deterministic actions, the second with the state of the first."""
    batch = observations(policy.observation_space)
    first, state = policy.predict(batch, deterministic=True)
    second, _ = policy.predict(batch[::-1].copy(), state=state, deterministic=True)
    return [first.tolist(), second.tolist()]


def env_of(path):
    return gymnasium.make(ENV_IDS[path.stem.rpartition("_")[2]])


def test_every_schema_has_its_files():
    names = {path.stem for path in MODELS}
    assert {f"schema_{n}_{p}" for n in range(1, SCHEMA + 1) for p in ENV_IDS} <= names


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_acts_as_it_did(path):
    expected = json.loads((GOLDEN / "actions.json").read_text())[path.stem]
    for policy in (load_policy(path), BatchPPO.load(path)):
        for ours, theirs in zip(answers(policy), expected, strict=True):
            assert np.array(ours) == pytest.approx(np.array(theirs), abs=1e-4)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_learns_on(path):
    agent = BatchPPO.load(path, env_of(path))
    before = agent.num_timesteps
    agent.learn(64, reset_num_timesteps=False)
    assert agent.num_timesteps == before + 64


def write():
    """Writes the files of the present schema."""
    GOLDEN.mkdir(exist_ok=True)
    record = GOLDEN / "actions.json"
    expected = json.loads(record.read_text()) if record.exists() else {}
    for policy, env_id in ENV_IDS.items():
        kwargs = {"net_arch": [4]}
        if policy != "MlpPolicy":
            kwargs["recurrent_size"] = 4
        agent = BatchPPO(policy, gymnasium.make(env_id), n_steps=64, policy_kwargs=kwargs, seed=0)
        agent.learn(256)
        path = GOLDEN / f"schema_{SCHEMA}_{policy}.zip"
        agent.save(path)
        expected[path.stem] = answers(load_policy(path))
    record.write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    write()
