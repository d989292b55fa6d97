"""What was wrong in the first batch-ppo and no other test holds, and the page that maps it."""

import re
from pathlib import Path

import numpy as np
import pytest
from batchppo_cli.build import make_evaluation_env, make_rendering_env, make_training_env
from batchppo_cli.plan import TrainOptions, plan_runs
from gymnasium.vector import SyncVectorEnv
from ppo_envs import CountingEnv

from batchppo import BatchPPO, learner
from batchppo.normalization import RewardNormalizer
from batchppo.update import batch_tensors

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "original.md"


@pytest.fixture(autouse=True)
def _plain_graph(monkeypatch):
    monkeypatch.setattr(learner, "JIT_COMPILE", False)


def agent(policy="MlpPolicy", **arguments):
    env = SyncVectorEnv([lambda i=i: CountingEnv(i) for i in range(3)])
    kwargs = {"net_arch": [4]}
    if policy != "MlpPolicy":
        kwargs["recurrent_size"] = 4
    settings = {"n_steps": 12, "n_epochs": 1, "seed": 0, **arguments}
    return BatchPPO(policy, env, policy_kwargs=kwargs, **settings)


class CaughtError(Exception):
    """Ends a training before its first update, which would have to be compiled."""


def batch_of(trained):
    """What the first update of an agent reads."""
    seen = []

    def keep(batch, *others):
        seen.append(batch)
        raise CaughtError

    trained._learner.warm_up = lambda *arguments: None
    trained._learner.updater.update = keep
    with pytest.raises(CaughtError):
        trained.learn(36)
    return seen[0]


def test_value_targets_know_no_sequences():
    """Defect 2: sequences of 3 and of 12 rows have the same targets, row by row."""
    short, whole = (batch_of(agent("MlpGruPolicy", sequence_length=n)) for n in (3, 12))
    assert short.returns.shape == (12, 3)
    assert whole.returns.shape == (3, 12)
    # 4 blocks of 3 steps, of 3 environments each
    in_order = short.returns.reshape(4, 3, 3).swapaxes(0, 1).reshape(3, 12)
    assert in_order == pytest.approx(whole.returns, abs=1e-4)


def test_a_constant_reward_is_not_blown_up():
    """Defect 7: a reward of 1 at each of 500 steps, as of CartPole, was 10 after clipping."""
    normalizer = RewardNormalizer(gamma=0.99, clip=10.0)
    ones = np.ones((500, 1))
    normalizer.update(ones, np.zeros((500, 1), bool), np.ones((500, 1), bool))
    returns = (1.0 - 0.99 ** np.arange(1, 501)) / (1.0 - 0.99)
    assert normalizer.normalize(ones) == pytest.approx(ones / returns.std())
    assert normalizer.normalize(ones).max() < 0.1


def test_a_model_file_holds_no_rollout(tmp_path):
    """Defect 17: the file is as large for short rollouts as for long ones."""
    sizes = []
    for n_steps in (12, 1200):
        made = agent(n_steps=n_steps)
        batch_of(made)
        assert set(made.get_parameters()) == {
            "weights", "optimizer", "observation_moments", "reward_moments",
        }  # fmt: skip
        made.save(tmp_path / f"{n_steps}.zip")
        sizes.append((tmp_path / f"{n_steps}.zip").stat().st_size)
    assert sizes[1] == pytest.approx(sizes[0], rel=0.02)


def test_the_network_is_evaluated_once_per_step(monkeypatch):
    """Defect 20: tracing the update calls the network once."""
    made = agent()
    calls = []
    network = made._learner.network
    original = network.forward
    monkeypatch.setattr(network, "forward", lambda inputs: calls.append(1) or original(inputs))
    batch = batch_tensors(batch_of(made))
    calls.clear()
    coefficients = made._learner._coefficients(1.0)
    made._learner.updater.gradients(batch, np.ones(36, np.float32), coefficients)
    assert len(calls) == 1


def test_training_evaluation_and_videos_have_the_same_wrappers():
    """Defect 34: what was trained with one range of actions is not shown with another."""
    (config,) = plan_runs("pendulum-2017", None, None, TrainOptions(seed=0, num_envs=2))
    envs = [
        make_training_env(config),
        make_evaluation_env(config.environment, 2),
        make_rendering_env(config.environment, "rgb_array"),
    ]
    spaces = [getattr(env, "single_action_space", env.action_space) for env in envs]
    for env in envs:
        env.close()
    assert [float(space.high[0]) for space in spaces] == [1.0, 1.0, 1.0]


# The page


def test_every_row_has_its_counterpart():
    text = PAGE.read_text()
    counts = {"P": 5, "W": 12, "B": 4, "S": 12, "A": 18, "N": 3, "C": 7}
    rows = [f"{letter}{i}" for letter, count in counts.items() for i in range(1, count + 1)]
    assert re.findall(r"^\| ([PWBSANC]\d+) \|", text, re.MULTILINE) == rows
    assert re.findall(r"^\| (\d+) \|", text, re.MULTILINE) == [str(i) for i in range(1, 37)]


def test_every_file_and_test_that_the_page_names_exists():
    text = PAGE.read_text()
    tests = re.findall(r"`(tests/\w+\.py)::(\w+)`", text)
    assert len(tests) > 30
    for file, name in tests:
        assert f"def {name}(" in (ROOT / file).read_text(), f"{file} has no {name}"
    files = re.findall(
        r"`((?:batchgym|batchppo|cli|tests|examples|benchmarks|docs)/[\w./]+)`", text
    )
    assert len(files) > 30
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_the_programs_of_the_page_run():
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(programs) == 2
    for program in programs:
        exec(compile(program, str(PAGE), "exec"), {})
