# ruff: noqa: N814, RUF059 - written as users write them
"""Scripts as users of Stable-Baselines3 and sb3-contrib have them, after changing the import."""

import gymnasium as gym
import keras
import numpy as np
import pytest
from ppo_envs import DictCueEnv, MaskedEnv, PictureEnv, RecallEnv

import batchgym
from batchppo import BatchPPO as PPO
from batchppo import evaluate_policy, learner
from batchppo.callbacks import (
    BaseCallback,
    CallbackList,
    CheckpointCallback,
    EvalCallback,
    EveryNTimesteps,
    StopTrainingOnMaxEpisodes,
    StopTrainingOnRewardThreshold,
)
from batchppo.summaries import HParam


@pytest.fixture(autouse=True)
def _plain_graph(monkeypatch):
    """Compiling takes seconds and does not matter here."""
    monkeypatch.setattr(learner, "JIT_COMPILE", False)


def test_quick_start():
    env = gym.make("CartPole-v1")
    model = PPO("MlpPolicy", env, verbose=0, n_steps=64)
    model.learn(total_timesteps=200)
    vec_env = model.get_env()
    obs, _ = vec_env.reset()
    ended = 0
    for _ in range(1000):
        action, _states = model.predict(obs, deterministic=True)
        obs, reward, terminated, truncated, info = vec_env.step(action)
        ended += int((terminated | truncated).sum())
    assert ended > 1  # it begins new episodes by itself


def test_many_environments_saving_and_loading(tmp_path):
    vec_env = batchgym.make_vec("CartPole-v1", num_envs=4)
    model = PPO("MlpPolicy", vec_env, n_steps=16, batch_size=32)
    model.learn(total_timesteps=128)
    model.save(tmp_path / "ppo_cartpole")
    del model
    model = PPO.load(tmp_path / "ppo_cartpole")
    obs, _ = vec_env.reset()
    for _ in range(5):
        action, _states = model.predict(obs)
        obs, rewards, terminated, truncated, info = vec_env.step(action)
    assert obs.shape == (4, 4)
    model = PPO.load(tmp_path / "ppo_cartpole", env=vec_env)
    model.learn(total_timesteps=64, reset_num_timesteps=False)
    assert model.num_timesteps == pytest.approx(128 + 64, abs=8)
    vec_env.close()


def test_evaluation():
    model = PPO("MlpPolicy", "CartPole-v1", n_steps=16, num_envs=2)
    model.learn(total_timesteps=64)
    mean_reward, std_reward = evaluate_policy(model, model.get_env(), n_eval_episodes=4)
    assert mean_reward > 0
    assert std_reward >= 0
    rewards, lengths = evaluate_policy(
        model, gym.make("CartPole-v1"), n_eval_episodes=2, return_episode_rewards=True
    )
    assert rewards == [float(length) for length in lengths]
    model.close()


def test_callbacks(tmp_path):
    class Counter(BaseCallback):
        def __init__(self, verbose=0):
            super().__init__(verbose)
            self.rollouts = 0

        def _on_rollout_end(self):
            self.rollouts += 1
            self.logger.record("custom/rollouts", self.rollouts)

        def _on_step(self):
            return True

    counter = Counter()
    evaluation = EvalCallback(
        gym.make("CartPole-v1"),
        callback_on_new_best=StopTrainingOnRewardThreshold(reward_threshold=475, verbose=1),
        best_model_save_path=tmp_path / "best",
        log_path=tmp_path / "results",
        eval_freq=100,
        n_eval_episodes=2,
        verbose=0,
    )
    checkpoint = CheckpointCallback(save_freq=100, save_path=tmp_path / "logs")
    called = []
    every = EveryNTimesteps(n_steps=50, callback=Probe(called))
    model = PPO("MlpPolicy", gym.make("CartPole-v1"), n_steps=50)
    model.learn(250, callback=CallbackList([counter, evaluation, checkpoint, every]))
    assert counter.rollouts == 5
    assert called == [50, 100, 150, 200, 250]
    assert (tmp_path / "best" / "best_model.zip").exists()
    assert sorted(p.name for p in (tmp_path / "logs").iterdir()) == [
        "rl_model_100_steps.zip",
        "rl_model_200_steps.zip",
    ]


class Probe(BaseCallback):
    """Notes when it is called."""

    def __init__(self, called):
        super().__init__()
        self.called = called

    def _on_step(self):
        self.called.append(self.num_timesteps)
        return True


def test_a_network_of_one_s_own_shape():
    class ReLU:
        """Stands for torch.nn.ReLU."""

    kwargs = {"activation_fn": ReLU, "net_arch": {"pi": [8, 8], "vf": [4]}}
    model = PPO("MlpPolicy", "CartPole-v1", num_envs=2, n_steps=16, policy_kwargs=kwargs)
    model.learn(32)
    shapes = {n: w.shape for n, w in model.get_parameters()["weights"].items() if "kernel" in n}
    assert shapes == {
        "actor/0/kernel": (4, 8), "actor/1/kernel": (8, 8), "actor/2/kernel": (8, 2),
        "critic/0/kernel": (4, 4), "critic/1/kernel": (4, 1),
    }  # fmt: skip
    model.close()


def test_a_features_extractor_of_one_s_own():
    @keras.saving.register_keras_serializable(package="my_package")
    class CustomCNN(keras.layers.Layer):
        def __init__(self, features_dim=256, **kwargs):
            super().__init__(**kwargs)
            self.cnn = keras.Sequential(
                [
                    keras.layers.Conv2D(4, kernel_size=8, strides=4, activation="relu"),
                    keras.layers.Conv2D(8, kernel_size=4, strides=2, activation="relu"),
                    keras.layers.Flatten(),
                ]
            )
            self.linear = keras.layers.Dense(features_dim, activation="relu")

        def call(self, observations):
            return self.linear(self.cnn(observations))

    policy_kwargs = {
        "features_extractor_class": CustomCNN,
        "features_extractor_kwargs": {"features_dim": 128},
    }
    model = PPO("CnnPolicy", PictureEnv(), policy_kwargs=policy_kwargs, n_steps=32, verbose=0)
    model.learn(64)
    weights = model.get_parameters()["weights"]
    assert weights["extractor/4/kernel"].shape == (8 * 3 * 3, 128)
    assert weights["actor/0/kernel"].shape == (128, 64)


def test_a_learning_rate_schedule():
    def linear_schedule(initial_value):
        return lambda progress_remaining: progress_remaining * initial_value

    model = PPO(
        "MlpPolicy", gym.make("CartPole-v1"), learning_rate=linear_schedule(1e-3), n_steps=20
    )
    model.learn(40)
    assert model.learning_rate(0.5) == 5e-4


def test_dict_observations():
    model = PPO("MultiInputPolicy", DictCueEnv(), n_steps=32, verbose=0)
    model.learn(total_timesteps=64)
    observation, _ = DictCueEnv().reset(seed=0)
    action, _ = model.predict(observation, deterministic=True)
    assert model.action_space.contains(action)


def test_memory_with_state_and_episode_starts():
    model = PPO("MlpLstmPolicy", RecallEnv(), n_steps=32, policy_kwargs={"lstm_hidden_size": 8})
    model.learn(64)
    vec_env = model.get_env()
    obs, _ = vec_env.reset()
    lstm_states, episode_starts = None, np.ones((1,), dtype=bool)
    for _ in range(12):
        action, lstm_states = model.predict(
            obs, state=lstm_states, episode_start=episode_starts, deterministic=True
        )
        obs, rewards, terminated, truncated, info = vec_env.step(action)
        episode_starts = terminated | truncated
        if episode_starts.any():
            obs, _ = vec_env.reset(options={"reset_mask": episode_starts})
    assert lstm_states.shape == (1, 16)


def test_masked_actions():
    env = MaskedEnv()
    model = PPO("MlpPolicy", env, n_steps=32, gamma=0.4, seed=32, verbose=0)
    model.learn(64)
    obs, info = env.reset()
    for _ in range(5):
        action, _states = model.predict(obs, action_masks=info["action_mask"])
        obs, reward, terminated, truncated, info = env.step(action)
        assert reward == 1.0


def test_hyperparameters_in_tensorboard(tmp_path):
    class HParamCallback(BaseCallback):
        def _on_training_start(self):
            hparam_dict = {
                "algorithm": self.model.__class__.__name__,
                "learning rate": self.model.learning_rate,
                "gamma": self.model.gamma,
            }
            metric_dict = {"rollout/ep_len_mean": 0, "train/value_loss": 0.0}
            self.logger.record(
                "hparams",
                HParam(hparam_dict, metric_dict),
                exclude=("stdout", "log", "json", "csv"),
            )

        def _on_step(self):
            return True

    model = PPO("MlpPolicy", "CartPole-v1", num_envs=2, n_steps=16, tensorboard_log=tmp_path)
    model.learn(64, callback=HParamCallback())
    assert model.get_vec_normalize_env() is None
    mean = np.mean([episode["r"] for episode in model.ep_info_buffer])
    assert mean == np.mean(model.episodes.returns)
    assert (model.gamma, model.ent_coef, model.n_steps) == (0.99, 0.0, 16)
    with pytest.raises(AttributeError, match="no attribute 'gama'"):
        _ = model.gama
    model.close()


def test_stopping_says_why(capsys):
    model = PPO("MlpPolicy", gym.make("CartPole-v1"), n_steps=64)
    model.learn(10_000, callback=StopTrainingOnMaxEpisodes(max_episodes=2, verbose=1))
    assert "Training ends at" in capsys.readouterr().out
