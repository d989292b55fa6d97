"""Every kind of policy, space and objective reaches the known optimum of a small environment."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from ppo_envs import (
    ChoicesEnv,
    CueEnv,
    DictCueEnv,
    EdgeEnv,
    MaskedDictEnv,
    MaskedEnv,
    PictureAndWordEnv,
    PictureEnv,
    RecallEnv,
    SidesEnv,
    SwitchesEnv,
)

from batchppo import BatchPPO, evaluate_policy, learner, load_policy

TWO_LAYERS = {"policy_kwargs": {"net_arch": [32, 32]}}


@pytest.fixture(autouse=True)
def _plain_graph(monkeypatch):
    """Compiling takes seconds and does not matter here."""
    monkeypatch.setattr(learner, "JIT_COMPILE", False)


def vector(make, num_envs=8, mode=AutoresetMode.SAME_STEP):
    return SyncVectorEnv([make] * num_envs, autoreset_mode=mode)


def learned(make, timesteps, policy="MlpPolicy", mode=AutoresetMode.SAME_STEP, **arguments):
    """Returns an agent that was trained, and its mean return in evaluation."""
    settings = {"n_steps": 32, "batch_size": 64, "n_epochs": 6, "learning_rate": 3e-3, "seed": 0}
    kwargs = {"net_arch": [16]}
    agent = BatchPPO(
        policy, vector(make, mode=mode), **{**settings, "policy_kwargs": kwargs, **arguments}
    )
    agent.learn(timesteps)
    return agent, evaluate_policy(agent, vector(make, mode=mode), 24)[0]


@pytest.mark.parametrize(
    ("make", "timesteps", "optimum", "arguments"),
    [
        (ChoicesEnv, 4000, 3.0, {}),
        (SwitchesEnv, 4000, 4.0, {}),
        (DictCueEnv, 12_000, 8.0, {"policy": "MultiInputPolicy", "gamma": 0.0, **TWO_LAYERS}),
        (CueEnv, 8000, 8.0, {"objective": "kl_penalty"}),
        (CueEnv, 8000, 8.0, {"clip_range_vf": 0.2, "target_kl": 0.05, "ent_coef": "linear:0.01"}),
    ],
    ids=["MultiDiscrete", "MultiBinary", "Dict", "KL penalty", "bounds and schedules"],
)
def test_reaches_the_optimum(make, timesteps, optimum, arguments):
    _, mean = learned(make, timesteps, **arguments)
    assert mean == optimum


def test_squashed_actions_reach_a_target_near_their_bound():
    kwargs = {"net_arch": [16], "squash_output": True}
    agent, mean = learned(EdgeEnv, 12_000, policy_kwargs=kwargs, learning_rate=1e-2)
    assert mean > -0.5
    assert agent.predict(np.zeros(2), deterministic=True)[0] == pytest.approx([9.0], abs=0.5)


@pytest.mark.parametrize("squash", [False, True])
def test_state_dependent_noise_finds_a_target_and_stays_until_the_next_episode(squash, tmp_path):
    kwargs = {"net_arch": [16], "squash_output": squash, "log_std_init": -1.0}
    agent, mean = learned(SidesEnv, 8000, policy_kwargs=kwargs, use_sde=True, sde_sample_freq=4)
    assert mean > -0.02
    agent.save(tmp_path / "model")
    policy = load_policy(tmp_path / "model", seed=0)
    sides = np.array([0, 1])
    first, second, third, fourth = (
        policy.predict(sides, episode_start=starts)[0]
        for starts in ([True, True], [False, False], [True, False], None)
    )
    assert np.array_equal(first, second)
    assert third[0] != second[0]
    assert third[1] == second[1]
    assert (fourth != third).all()


@pytest.mark.parametrize("share", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_pictures(share, tmp_path):
    kwargs = {"features_dim": 32, "share_features_extractor": share}
    agent, mean = learned(
        PictureEnv, 3000, "CnnPolicy", policy_kwargs=kwargs, learning_rate=1e-3, n_epochs=4
    )
    assert mean == 8.0
    agent.save(tmp_path / "model")
    batch = np.stack([PictureEnv().reset(seed=seed)[0] for seed in range(10)])
    expected, _ = agent.predict(batch, deterministic=True)
    for loaded in (BatchPPO.load(tmp_path / "model"), load_policy(tmp_path / "model")):
        assert np.array_equal(loaded.predict(batch, deterministic=True)[0], expected)
        assert loaded.predict(batch[0], deterministic=True)[0] == expected[0]


def test_pictures_beside_numbers():
    kwargs = {"features_dim": 32, "net_arch": [32]}
    _, mean = learned(
        PictureAndWordEnv,
        6000,
        "MultiInputPolicy",
        policy_kwargs=kwargs,
        gamma=0.0,
        learning_rate=1e-3,
    )
    assert mean >= 7.5


@pytest.mark.parametrize(
    ("cell", "mode"),
    [
        ("Lstm", AutoresetMode.SAME_STEP),
        ("Gru", AutoresetMode.NEXT_STEP),
        pytest.param("Lstm", AutoresetMode.DISABLED, marks=pytest.mark.slow),
        pytest.param("Gru", AutoresetMode.SAME_STEP, marks=pytest.mark.slow),
    ],
)
def test_memory_recalls_what_was_seen(cell, mode, tmp_path):
    kwargs = {"net_arch": [], "recurrent_size": 16}
    agent, mean = learned(
        RecallEnv, 12_000, f"Mlp{cell}Policy", mode, policy_kwargs=kwargs,
        sequence_length=8, learning_rate=1e-2,
    )  # fmt: skip
    assert mean == 1.0
    agent.save(tmp_path / "model")
    for loaded in (BatchPPO.load(tmp_path / "model"), load_policy(tmp_path / "model")):
        assert evaluate_policy(loaded, vector(RecallEnv, mode=mode), 24)[0] == 1.0


def test_without_memory_it_is_a_guess():
    _, mean = learned(RecallEnv, 6000)
    assert mean < 0.9


@pytest.mark.slow
def test_pictures_and_memory_together():
    kwargs = {"features_dim": 16, "recurrent_size": 16}
    _, mean = learned(
        PictureEnv, 4000, "CnnLstmPolicy", policy_kwargs=kwargs, sequence_length=8, gamma=0.0,
    )  # fmt: skip
    assert mean >= 7.5


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("make", [MaskedEnv, MaskedDictEnv])
def test_masks_reach_the_optimum_at_once(make, mode):
    policy = "MultiInputPolicy" if make is MaskedDictEnv else "MlpPolicy"
    env = vector(make, mode=mode)
    agent = BatchPPO(policy, env, n_steps=16, policy_kwargs={"net_arch": [4]}, seed=0).learn(256)
    assert set(agent.episodes.returns) == {5.0}


def test_without_masks_it_is_hopeless():
    class Unmasked(MaskedEnv):
        def _show(self):
            return super()._show()[0], {}

    _, mean = learned(Unmasked, 2000)
    assert mean < 1.0


def test_masks_with_memory():
    env = vector(MaskedEnv)
    kwargs = {"net_arch": [], "recurrent_size": 4}
    agent = BatchPPO("MlpLstmPolicy", env, n_steps=16, policy_kwargs=kwargs, seed=0).learn(256)
    assert set(agent.episodes.returns) == {5.0}


def test_masks_in_predict():
    agent = BatchPPO("MlpPolicy", vector(MaskedEnv), policy_kwargs={"net_arch": [4]}, seed=0)
    mask = np.zeros((3, 40), bool)
    mask[[0, 1, 2], [7, 8, 9]] = True
    for deterministic in (True, False):
        actions, _ = agent.predict(np.zeros((3, 1)), deterministic=deterministic, action_masks=mask)
        assert actions.tolist() == [7, 8, 9]
    assert agent.predict(np.zeros(1), action_masks=mask[1])[0] == 8
    with pytest.raises(ValueError, match=r"shape \(39,\), expected \(40,\)"):
        agent.predict(np.zeros(1), action_masks=np.ones(39))
    with pytest.raises(ValueError, match="environment 1 allows no choice at all"):
        agent.predict(np.zeros((2, 1)), action_masks=np.eye(2, 40, k=0) * [[1], [0]])
