"""Callbacks: their order, their frequencies in environment steps, and what they see."""

import csv
import io

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from ppo_envs import CountingEnv, CueEnv

from batchppo import BatchPPO, learner
from batchppo.callbacks import (
    BaseCallback,
    CallbackList,
    CheckpointCallback,
    EvalCallback,
    EveryNTimesteps,
    LogEveryNTimesteps,
    ProgressBarCallback,
    StopTrainingOnMaxEpisodes,
    StopTrainingOnNoModelImprovement,
    StopTrainingOnRewardThreshold,
    as_callback,
)
from batchppo.logger import configure_logger

NUM_ENVS = 4


@pytest.fixture(autouse=True)
def _plain_graph(monkeypatch):
    """Compiling takes seconds and does not matter here."""
    monkeypatch.setattr(learner, "JIT_COMPILE", False)


def vector(make=CueEnv):
    return SyncVectorEnv([make] * NUM_ENVS, autoreset_mode=AutoresetMode.SAME_STEP)


def agent(env=None, **arguments):
    small = {"n_steps": 8, "batch_size": 32, "n_epochs": 1, "seed": 0}
    kwargs = {"net_arch": [4]}
    return BatchPPO("MlpPolicy", env or vector(), policy_kwargs=kwargs, **{**small, **arguments})


class Diary(BaseCallback):
    """Writes down what is called, and at which environment step."""

    def __init__(self, stop_at=None):
        super().__init__()
        self.entries = []
        self.stop_at = stop_at

    def _init_callback(self):
        self.entries.append("init")

    def _on_training_start(self):
        self.entries.append("training start")

    def _on_rollout_start(self):
        self.entries.append("rollout start")

    def _on_step(self):
        self.entries.append(self.num_timesteps)
        return self.stop_at is None or self.num_timesteps < self.stop_at

    def _on_rollout_end(self):
        self.entries.append("rollout end")

    def _on_training_end(self):
        self.entries.append("training end")


ROLLOUT = ["rollout start", *range(4, 33, 4), "rollout end"]


def test_hooks_in_order():
    diary = Diary()
    agent().learn(48, callback=diary)
    second = ["rollout start", 36, 40, 44, 48, "rollout end"]
    assert diary.entries == ["init", "training start", *ROLLOUT, *second, "training end"]
    assert diary.n_calls == 12


def test_false_ends_training_before_the_partial_rollout_is_learned():
    diary = Diary(stop_at=36)
    trained = agent()
    trained.learn(1000, callback=diary)
    assert diary.entries[-3:] == ["rollout start", 36, "training end"]
    assert trained.num_timesteps == 36
    assert trained._learner.n_updates == 1


def test_training_end_is_called_when_an_exception_passes():
    class Raises(Diary):
        def _on_step(self):
            raise RuntimeError("stop")

    diary = Raises()
    with pytest.raises(RuntimeError, match="stop"):
        agent().learn(100, callback=diary)
    assert diary.entries[-1] == "training end"


def test_every_callback_of_a_list_is_called_also_behind_one_that_stops():
    first, second = Diary(stop_at=4), Diary()
    agent().learn(100, callback=[first, second])
    assert second.entries == first.entries


def test_callbacks_see_what_happened():
    seen = {}

    class Look(BaseCallback):
        def _on_step(self):
            seen.update(self.locals)
            assert self.training_env.num_envs == NUM_ENVS
            assert self.logger is self.model.logger
            return False

    agent(vector(CountingEnv)).learn(100, callback=Look())
    assert seen["rewards"].tolist() == [1.0] * 4
    assert seen["dones"].tolist() == [False] * 4
    assert seen["new_obs"][:, 2].tolist() == [1.0] * 4
    assert seen["actions"].shape == (4,)
    assert "infos" in seen


def test_a_function_is_a_callback():
    calls = []

    def function(local, _):
        calls.append(local["rewards"].sum())
        return len(calls) < 3

    agent().learn(100, callback=function)
    assert len(calls) == 3
    assert as_callback(None) is None
    assert isinstance(as_callback([Diary(), Diary()]), CallbackList)
    with pytest.raises(TypeError, match="callback must be a BaseCallback.*got 3"):
        as_callback(3)


def test_frequencies_count_environment_steps():
    calls = []
    every = EveryNTimesteps(10, callback=as_callback(lambda *_: calls.append(model.num_timesteps)))
    model = agent()
    model.learn(64, callback=every)
    assert calls == [12, 20, 32, 40, 52, 60]  # the first step at or behind each multiple of 10


def test_logging_at_a_frequency_of_its_own(tmp_path):
    model = agent()
    model.set_logger(configure_logger(tmp_path, ["csv"]))
    model.learn(96, callback=LogEveryNTimesteps(20), log_interval=None)
    model.logger.close()
    with (tmp_path / "progress.csv").open(newline="") as file:
        logged = list(csv.DictReader(file))
    assert [int(row["time/total_timesteps"]) for row in logged] == [20, 40, 60, 80]
    assert logged[-1]["rollout/ep_len_mean"] == "8.0"
    assert logged[0]["rollout/ep_len_mean"] == ""  # no episode has ended yet


def test_frequencies_go_on_over_two_calls():
    calls = []
    model = agent()
    for _ in range(2):
        every = EveryNTimesteps(24, as_callback(lambda *_: calls.append(model.num_timesteps)))
        model.learn(32, callback=every, reset_num_timesteps=False)
    assert calls == [24, 48]


def test_checkpoints_can_be_loaded_and_say_their_steps(tmp_path):
    agent().learn(64, callback=CheckpointCallback(20, tmp_path / "c", name_prefix="cue"))
    names = sorted(path.name for path in (tmp_path / "c").iterdir())
    assert names == ["cue_20_steps.zip", "cue_40_steps.zip", "cue_60_steps.zip"]
    assert BatchPPO.load(tmp_path / "c" / "cue_40_steps").num_timesteps == 40


def test_evaluations_keep_the_best_model_and_the_figures(tmp_path):
    evaluation = EvalCallback(
        vector(), n_eval_episodes=4, eval_freq=64, log_path=tmp_path,
        best_model_save_path=tmp_path, verbose=0,
    )  # fmt: skip
    model = agent(n_epochs=8, learning_rate=1e-2)
    model.set_logger(configure_logger(tmp_path, ["csv"]))
    model.learn(64 * 40, callback=evaluation)
    model.logger.close()
    stored = np.load(tmp_path / "evaluations.npz")
    assert stored["timesteps"].tolist() == list(range(64, 64 * 40 + 1, 64))
    assert stored["results"].shape == stored["ep_lengths"].shape == (40, 4)
    means = stored["results"].mean(axis=1)
    assert evaluation.best_mean_reward == means.max() == 8.0
    assert evaluation.last_mean_reward == means[-1]
    best = BatchPPO.load(tmp_path / "best_model.zip")
    assert best.num_timesteps == stored["timesteps"][means.argmax()]
    assert "eval/mean_reward" in (tmp_path / "progress.csv").read_text()


def test_evaluations_count_successes(tmp_path):
    class Reporting(gymnasium.Wrapper):
        """Says that an episode succeeds if its environment is the second of two."""

        def __init__(self, index):
            super().__init__(CueEnv())
            self.index = index

        def step(self, action):
            *result, info = self.env.step(action)
            return *result, {**info, "is_success": self.index == 1}

    env = SyncVectorEnv([lambda i=i: Reporting(i) for i in range(2)])
    evaluation = EvalCallback(env, n_eval_episodes=2, eval_freq=64, log_path=tmp_path, verbose=0)
    model = agent()
    model.set_logger(configure_logger(tmp_path, ["csv"]))
    model.learn(64, callback=evaluation)
    model.logger.close()
    with (tmp_path / "progress.csv").open() as file:
        rates = [row["eval/success_rate"] for row in csv.DictReader(file)]
    assert "0.5" in rates
    assert np.load(tmp_path / "evaluations.npz")["successes"].tolist() == [[0.0, 1.0]]


def test_a_subclass_sees_the_episodes_of_each_evaluation():
    seen = []

    class Seeing(EvalCallback):
        def _on_evaluation(self, returns, lengths):
            seen.append((self.num_timesteps, len(returns), self.last_mean_reward, lengths))

    evaluation = Seeing(vector(), n_eval_episodes=4, eval_freq=64, verbose=0)
    agent().learn(128, callback=evaluation)
    assert [entry[:2] for entry in seen] == [(64, 4), (128, 4)]
    assert seen[0][2] == -np.inf  # its own mean is not yet the last one
    assert seen[0][3] == [8] * 4


def test_evaluating_in_the_training_environment_is_refused():
    env = vector()
    with pytest.raises(ValueError, match="eval_env is the training environment"):
        agent(env).learn(32, callback=EvalCallback(env))


def test_a_single_training_environment_is_recognized_too():
    env = CueEnv()
    with pytest.raises(ValueError, match="eval_env is the training environment"):
        agent(env).learn(32, callback=EvalCallback(env))
    with pytest.raises(ValueError, match="eval_env is the training environment"):
        agent(env).learn(32, callback=EvalCallback(TimeLimit(env, 3)))


def test_training_ends_at_a_reward_threshold():
    stop = StopTrainingOnRewardThreshold(reward_threshold=6.0)
    evaluation = EvalCallback(vector(), callback_on_new_best=stop, eval_freq=64, verbose=0)
    model = agent(n_epochs=8, learning_rate=1e-2)
    model.learn(100_000, callback=evaluation)
    assert evaluation.best_mean_reward >= 6.0
    assert model.num_timesteps < 10_000


def test_training_ends_without_improvement():
    stop = StopTrainingOnNoModelImprovement(max_no_improvement_evals=3, min_evals=2)
    evaluation = EvalCallback(
        vector(CountingEnv), callback_after_eval=stop, eval_freq=32, n_eval_episodes=4, verbose=0
    )
    evaluation.best_mean_reward = np.inf
    model = agent(vector(CountingEnv))
    model.learn(100_000, callback=evaluation)
    # Evaluations 1 and 2 are waited for; the third finds no better one, nor do the next three.
    assert model.num_timesteps == 32 * 6


def test_training_ends_after_enough_episodes():
    model = agent()
    model.learn(100_000, callback=StopTrainingOnMaxEpisodes(max_episodes=3))
    assert model.num_timesteps == 3 * NUM_ENVS * 8


@pytest.mark.parametrize(
    "callback", [StopTrainingOnRewardThreshold(1.0), StopTrainingOnNoModelImprovement(1)]
)
def test_what_needs_an_evaluation_says_so(callback):
    with pytest.raises(TypeError, match="give it to an EvalCallback"):
        agent().learn(32, callback=callback)


@pytest.mark.parametrize("frequency", [0, -5])
def test_a_frequency_must_be_positive(frequency, tmp_path):
    with pytest.raises(ValueError, match=f"at least 1 environment step, got {frequency}"):
        CheckpointCallback(frequency, tmp_path)


def test_the_progress_bar_shows_steps_and_mean_return(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("sys.stdout", screen)
    model = agent()
    model.learn(128, callback=ProgressBarCallback())
    mean = np.mean(model.episodes.returns)
    assert "128/128 steps" in screen.getvalue()
    assert f"return {mean:.1f}" in screen.getvalue()
