"""The agent as a whole: it learns, predicts, saves, loads and says what is wrong."""

import re
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from ppo_envs import BrokenEnv, CountingEnv, CueEnv, TargetEnv

from batchppo import BatchPPO, evaluate_policy, learner, load_policy
from batchppo.callbacks import BaseCallback
from batchppo.errors import ModelFileError, NonFiniteError, SpaceError

SMALL = {"n_steps": 16, "batch_size": 32, "n_epochs": 2, "policy_kwargs": {"net_arch": [8]}}


def vector(make, num_envs=4, mode=AutoresetMode.SAME_STEP):
    return SyncVectorEnv([make] * num_envs, autoreset_mode=mode)


def small_agent(env=None, **arguments):
    return BatchPPO("MlpPolicy", env or vector(CueEnv), **{**SMALL, "seed": 0, **arguments})


@pytest.fixture(autouse=True)
def _plain_graph(request, monkeypatch):
    """Compiling takes seconds; what does not depend on it uses a plain graph."""
    if "xla" not in request.keywords:
        monkeypatch.setattr(learner, "JIT_COMPILE", False)


@pytest.fixture(scope="module")
def trained():
    """An agent that has learned CueEnv."""
    return small_agent(n_epochs=8, learning_rate=5e-3).learn(6000)


def weights(agent):
    return agent._learner.network.weights()


def equal(one, other):
    return all(np.array_equal(array, weights(other)[name]) for name, array in weights(one).items())


# Learning


def test_learns_discrete_cues(trained):
    mean, _ = evaluate_policy(trained, vector(CueEnv), 20)
    assert mean == 8.0  # the right action in all 8 steps


@pytest.mark.xla
def test_learns_a_continuous_target():
    agent = small_agent(vector(TargetEnv), n_epochs=8, learning_rate=5e-3).learn(8000)
    action, _ = agent.predict(np.zeros(2), deterministic=True)
    assert action == pytest.approx([0.5], abs=0.1)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_timesteps_count_transitions_alone(mode):
    env = SyncVectorEnv([CountingEnv] * 4, autoreset_mode=mode)
    agent = small_agent(env, stats_window_size=1000).learn(500)
    assert 500 <= agent.num_timesteps < 504
    steps = sum(agent.episodes.lengths) + agent.episodes._length.sum()
    assert steps == agent.num_timesteps


@pytest.mark.xla
def test_the_last_rollouts_meet_the_asked_total_with_one_trace():
    agent = small_agent().learn(64 * 2 + 36)
    assert agent.num_timesteps == 164
    agent.learn(8, reset_num_timesteps=False)
    assert agent.num_timesteps == 172
    assert agent._learner.updater.traces == 1


@pytest.mark.xla
def test_same_seed_same_weights():
    one, two = (small_agent(seed=5).learn(300) for _ in range(2))
    assert equal(one, two)


def test_another_seed_other_weights():
    assert not equal(small_agent(seed=5), small_agent(seed=6))


def test_the_number_of_workers_does_not_matter():
    agents = [
        BatchPPO("MlpPolicy", "CartPole-v1", num_envs=4, num_workers=workers, seed=1, **SMALL)
        for workers in (1, 3)
    ]
    for agent in agents:
        agent.learn(300)
        agent.close()
    assert equal(*agents)


def test_a_seed_of_its_own_is_told_and_repeats_the_run():
    first = small_agent(seed=None)
    again = small_agent(seed=first.seed)
    assert equal(first.learn(100), again.learn(100))


def test_one_environment_of_any_kind():
    for env in (CueEnv(), gymnasium.make("CartPole-v1")):
        agent = small_agent(env).learn(100)
        assert agent.n_envs == 1
        assert agent.num_timesteps == 100


def test_two_calls_go_on_counting_or_begin_anew():
    agent = small_agent()
    assert agent.learn(64).num_timesteps == 64
    assert agent.learn(64, reset_num_timesteps=False).num_timesteps == 128
    assert agent.learn(64).num_timesteps == 64


def test_the_learning_rate_can_be_set():
    agent = small_agent()
    before = weights(agent)
    agent.learning_rate = 0.0
    agent.learn(64)
    assert all(np.array_equal(before[name], w) for name, w in weights(agent).items())


def test_schedules_begin_at_their_start_and_never_pass_their_end():
    seen = []

    def rate(remaining):
        seen.append(remaining)
        return 1e-3

    small_agent(learning_rate=rate).learn(64 * 4)
    assert seen == [1.0, 0.75, 0.5, 0.25]


def spied(agent, monkeypatch):
    """Returns a list that gets each update's rollout, its rewards before it, and its figures."""
    seen, learn = [], agent._learner.learn

    def spy(rollout, progress_remaining):
        rewards = rollout.rewards.copy()
        seen.append((rollout, rewards, learn(rollout, progress_remaining)))
        return seen[-1][2]

    monkeypatch.setattr(agent._learner, "learn", spy)
    return seen


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (0.5, [0.5, 0.5]),
        ("linear:0.5", [0.5, 0.25]),
        ("piecewise:0=0.5,0.5=2", [0.5, 2.0]),
        (lambda remaining: 3.0 * remaining, [3.0, 1.5]),
    ],
)
@pytest.mark.parametrize("name", ["ent_coef", "vf_coef"])
def test_every_weight_of_the_loss_follows_its_schedule(monkeypatch, name, schedule, expected):
    fixed = {"ent_coef": 0.0, "vf_coef": 0.0, name: schedule}
    agent = small_agent(learning_rate=0.0, normalize_rewards=False, **fixed)
    seen = spied(agent, monkeypatch)
    agent.learn(2 * 64)
    term = "train/entropy_loss" if name == "ent_coef" else "train/value_loss"
    weights_used = [
        (figures["train/loss"] - figures["train/policy_gradient_loss"]) / figures[term]
        for *_, figures in seen
    ]
    assert weights_used == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_the_value_of_a_cut_off_episode_stays_out_of_its_rewards(monkeypatch, mode):
    agent = small_agent(SyncVectorEnv([CountingEnv] * 2, autoreset_mode=mode))
    bias = agent._learner.network.variables["critic/1/bias"]
    bias.assign([1e6])  # a value that could not be missed in a reward or a return
    seen = spied(agent, monkeypatch)
    agent.learn(64)
    assert sum(int(rollout.truncated.sum()) for rollout, *_ in seen) > 4
    for rollout, rewards, _ in seen:
        assert np.array_equal(rollout.rewards, rewards)
        assert set(rewards[rollout.valid] % 10) <= {1.0, 2.0, 3.0, 4.0, 5.0}  # steps counted
        assert rewards.max() < 1000
    for i, episode in enumerate(agent.ep_info_buffer):
        # Both copies end their episodes together: the k-th has 2 + k % 4 steps of 10 k + step.
        k, length = i // 2, 2 + i // 2 % 4
        assert episode == {"r": 10.0 * k * length + length * (length + 1) / 2, "l": length}


# Interruptions


class Interrupt(BaseCallback):
    """Raises `error` at call `at`."""

    def __init__(self, error, at):
        super().__init__()
        self.error, self.at = error, at

    def _on_step(self):
        if self.n_calls == self.at:
            raise self.error
        return True


def test_ctrl_c_leaves_an_agent_that_can_be_saved_and_trained(tmp_path):
    agent = small_agent()
    with pytest.raises(KeyboardInterrupt):
        agent.learn(10_000, callback=Interrupt(KeyboardInterrupt(), 40))
    assert agent.num_timesteps == 128  # two rollouts of 64; the third was not learned from
    agent.save(tmp_path / "model")
    agent.learn(64, reset_num_timesteps=False)
    assert BatchPPO.load(tmp_path / "model").num_timesteps == 128


def test_an_environment_s_exception_passes_and_training_can_go_on():
    agent = small_agent(vector(lambda: BrokenEnv("exception", at=10)))
    with pytest.raises(RuntimeError, match="the motor is on fire"):
        agent.learn(1000)
    agent.set_env(vector(CountingLike))
    agent.learn(64, reset_num_timesteps=False)
    assert np.isfinite(agent.predict(np.zeros(2))[0])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["observation", "reward"])
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_what_is_not_finite_is_named_with_its_environment_and_step(where, value, mode):
    makers = [CountingLike, CountingLike, lambda: BrokenEnv(where, value, at=5)]
    agent = small_agent(SyncVectorEnv(makers, autoreset_mode=mode))
    expected = f"environment 2 returned {value} in its {where} at timestep 15;"
    with pytest.raises(NonFiniteError, match=expected):
        agent.learn(1000)


class CountingLike(BrokenEnv):
    """A sound environment with BrokenEnv's spaces."""

    def __init__(self):
        super().__init__(at=10**9)


def everything(agent):
    """Returns all arrays but the learning rate of the last update."""
    groups = agent.get_parameters().items()
    arrays = {f"{group}/{name}": array for group, named in groups for name, array in named.items()}
    del arrays["optimizer/1"]
    return arrays


def assert_as_before(agent, before, timesteps):
    after = everything(agent)
    assert all(np.array_equal(array, after[name]) for name, array in before.items())
    assert agent.num_timesteps == timesteps


@pytest.mark.xla
def test_a_loss_that_is_not_finite_is_named_and_the_update_undone():
    rates = iter([1e-3, 1e-3, 1e30, 1e-3])
    agent = small_agent(learning_rate=lambda _: next(rates)).learn(64)
    before, updates = everything(agent), agent._learner.n_updates
    with pytest.raises(
        NonFiniteError, match=r"'\w+_loss' became NaN or infinite in gradient step 2 .*as it was"
    ):
        agent.learn(128, reset_num_timesteps=False)
    # The second update was sound; of the third, its first step had been made.
    assert agent._learner.n_updates == 2 * updates
    assert agent.num_timesteps == 128
    assert not np.array_equal(before["weights/actor/0/kernel"], weights(agent)["actor/0/kernel"])
    assert max(np.abs(w).max() for w in weights(agent).values()) < 10.0
    agent.learn(64, reset_num_timesteps=False)
    assert agent.num_timesteps == 192


@pytest.mark.parametrize(("reward", "normalize"), [(1e200, False), (1e200, True), (-1e39, False)])
def test_rewards_that_are_too_large_are_named(reward, normalize):
    agent = small_agent(vector(TooLarge), normalize_rewards=normalize)
    agent.learn(64)
    before = everything(agent)
    agent.get_env().set_attr("reward", reward)
    match = re.escape(f"the largest reward of the rollout is {reward:g}, of environment")
    if normalize:
        match = "the statistics of discounted returns overflow: the largest is .*e"
    with pytest.raises(NonFiniteError, match=match):
        agent.learn(64, reset_num_timesteps=False)
    assert_as_before(agent, before, 64)


def test_observations_that_are_too_large_are_named():
    class Far(TargetEnv):
        observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)

        def step(self, action):
            return np.array([0.0, 1e200]), 0.0, False, False, {}

    agent = small_agent(vector(Far))
    with pytest.raises(NonFiniteError, match=r"statistics of observations overflow.*is 1e\+200"):
        agent.learn(64)
    assert all(np.isfinite(array).all() for array in everything(agent).values())
    assert agent.num_timesteps == 0


class TooLarge(CueEnv):
    """Gives `reward` where there is one."""

    reward = None

    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, reward if self.reward is None else self.reward, *rest


@pytest.mark.parametrize(
    ("value", "error", "match"),
    [
        (float("nan"), ValueError, "schedule of {} returned nan for a remaining progress of 1;"),
        (-1.0, ValueError, "schedule of {} returned -1.0"),
        ("fast", TypeError, "returned 'fast' for a remaining progress of 1; expected a number"),
        (None, TypeError, "returned None"),
    ],
)
@pytest.mark.parametrize("name", ["learning_rate", "ent_coef"])
def test_what_a_schedule_returns_is_checked(name, value, error, match):
    agent = small_agent(**{name: lambda _: value})
    before = everything(agent)
    with pytest.raises(error, match=match.format(name)):
        agent.learn(64)
    assert_as_before(agent, before, 0)


def test_a_weight_that_is_not_finite_is_named():
    agent = small_agent()
    kernel = agent._learner.network.variables["critic/1/kernel"]
    kernel.assign(np.full(kernel.shape, np.nan))
    with pytest.raises(NonFiniteError, match=r"NaN or infinity, first in 'critic/1/kernel'"):
        agent.learn(1000)


# Predicting


def test_single_and_batched_predictions_agree(trained):
    batch = np.array([5, 6, 7, 5])
    together, state = trained.predict(batch, deterministic=True)
    alone = [trained.predict(cue, deterministic=True)[0] for cue in batch]
    assert state is None
    assert together.tolist() == [int(action) for action in alone] == [-1, 0, 1, -1]
    assert alone[0].shape == ()
    assert together.dtype == trained.action_space.dtype
    assert trained.action_space.contains(alone[0])


def test_random_predictions_vary_and_stay_in_the_space():
    agent = small_agent(vector(TargetEnv))
    actions = np.concatenate([agent.predict(np.zeros((50, 2)))[0] for _ in range(4)])
    assert len(np.unique(actions)) > 50
    assert (np.abs(actions) <= 1.0).all()
    assert agent.predict(np.zeros(2))[0].shape == (1,)


def test_predict_refuses_what_does_not_fit(trained):
    with pytest.raises(SpaceError, match="tuple"):
        trained.predict((5, {}))
    with pytest.raises(ValueError, match="remembers nothing"):
        trained.predict(5, state=np.zeros(3))


# Saving and loading


@pytest.mark.parametrize("make", [CueEnv, TargetEnv])
def test_save_load_and_predict_in_a_new_process_without_tensorflow(tmp_path, make):
    agent = small_agent(vector(make)).learn(200)
    agent.save(tmp_path / "model.zip")
    make().observation_space.seed(0)
    space = agent.observation_space
    space.seed(0)
    batch = np.stack([space.sample() for _ in range(20)])
    np.save(tmp_path / "batch.npy", batch)
    script = (
        "import sys, numpy as np, batchppo\n"
        "policy = batchppo.load_policy('model.zip')\n"
        "actions, _ = policy.predict(np.load('batch.npy'), deterministic=True)\n"
        "np.save('actions.npy', actions)\n"
        "sys.exit(any(name in sys.modules for name in ('tensorflow', 'keras', 'batchgym')))\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path, timeout=60)
    expected, _ = agent.predict(batch, deterministic=True)
    assert np.array_equal(np.load(tmp_path / "actions.npy"), expected)
    loaded, _ = BatchPPO.load(tmp_path / "model").predict(batch, deterministic=True)
    assert np.array_equal(loaded, expected)


def test_two_resumes_from_one_file_are_equal(tmp_path):
    small_agent(learning_rate="linear:1e-2").learn(300).save(tmp_path / "model")
    resumed = [BatchPPO.load(tmp_path / "model", vector(CueEnv)) for _ in range(2)]
    for agent in resumed:
        agent.learn(300, reset_num_timesteps=False)
    assert resumed[0].num_timesteps == 600
    assert equal(*resumed)


def test_everything_that_learning_needs_is_restored(tmp_path):
    agent = small_agent().learn(300)
    agent.save(tmp_path / "model")
    loaded = BatchPPO.load(tmp_path / "model", vector(CueEnv))
    one, two = agent._state(), loaded._state()
    assert one.num_envs == two.num_envs
    assert (one.config, one.random, one.n_updates) == (two.config, two.random, two.n_updates)
    for group in ("weights", "optimizer", "observation_moments", "reward_moments"):
        arrays, others = getattr(one, group), getattr(two, group)
        assert arrays.keys() == others.keys()
        assert all(np.array_equal(arrays[name], others[name]) for name in arrays)


def test_a_model_may_be_loaded_with_another_number_of_environments(tmp_path):
    small_agent().learn(100).save(tmp_path / "model")
    agent = BatchPPO.load(tmp_path / "model", vector(CueEnv, 7), n_steps=5)
    assert agent.learn(70, reset_num_timesteps=False).num_timesteps == 170
    assert agent.n_envs == 7


def test_a_function_as_schedule_is_asked_for_again(tmp_path):
    agent = small_agent(learning_rate=lambda remaining: 1e-3 * remaining).learn(64)
    agent.save(tmp_path / "model")
    loaded = BatchPPO.load(tmp_path / "model", vector(CueEnv))
    assert loaded.predict(5)[0] in (-1, 0, 1)
    with pytest.raises(ValueError, match="custom_objects=\\{'learning_rate'"):
        loaded.learn(64)
    given = BatchPPO.load(
        tmp_path / "model", vector(CueEnv), custom_objects={"learning_rate": lambda remaining: 0.0}
    )
    before = weights(given)
    given.learn(64)
    assert all(np.array_equal(before[name], w) for name, w in weights(given).items())


def test_a_model_for_other_spaces_is_refused(tmp_path):
    small_agent().save(tmp_path / "model")
    with pytest.raises(SpaceError, match=r"observation space is Box.*the agent's is Discrete\(3"):
        BatchPPO.load(tmp_path / "model", vector(TargetEnv))


def test_no_environment_is_needed_to_load_but_to_learn(tmp_path):
    small_agent().save(tmp_path / "model")
    agent = BatchPPO.load(tmp_path / "model")
    assert agent.get_env() is None
    with pytest.raises(ValueError, match="no environment: give one with set_env"):
        agent.learn(10)
    agent.set_env(vector(CueEnv))
    assert agent.learn(64).num_timesteps == 64


def test_a_missing_array_is_named(tmp_path):
    from test_model_file import rewritten

    small_agent().save(tmp_path / "model")
    drop = "arrays/weights/actor/0/kernel.npy"
    rewritten(tmp_path / "model.zip", lambda n, c: None if n == drop else c)
    for load in (BatchPPO.load, load_policy):
        with pytest.raises(ModelFileError, match=r"no array 'weights/actor/0/kernel'.*\(3, 8\)"):
            load(tmp_path / "model")


def test_parameters_can_be_taken_over_in_place(tmp_path):
    source = small_agent(seed=1).learn(200)
    source.save(tmp_path / "model")
    for given in (tmp_path / "model", source.get_parameters()):
        agent = small_agent(seed=2)
        agent.set_parameters(given)
        assert equal(agent, source)
        cues = np.array([5, 6, 7])
        expected = source.predict(cues, deterministic=True)[0]
        assert np.array_equal(agent.predict(cues, deterministic=True)[0], expected)
        assert agent.num_timesteps == 0


def test_parameters_are_taken_over_whole_or_not_at_all():
    agent = small_agent()
    before = weights(agent)
    bias = {"weights": {"actor/0/bias": np.ones(8)}}
    for wrong, match in (
        (bias, "is missing, and"),
        ({"weights": {"actor/0/bias": np.ones(9)}}, r"shape \(9,\), this model has shape \(8,\)"),
        ({"weights": {"actor/9/bias": np.ones(8)}}, "this model has no such array"),
        ({"wights": {"a": np.ones(1)}, **bias}, "this model has no such array"),
        ({"weights": {"actor/0/bias": np.full(8, np.nan)}}, "'weights/actor/0/bias' with NaN"),
    ):
        with pytest.raises(ModelFileError, match=match):
            agent.set_parameters(wrong)
        assert all(np.array_equal(before[name], w) for name, w in weights(agent).items())
    agent.set_parameters(bias, exact_match=False)
    assert weights(agent)["actor/0/bias"].tolist() == [1.0] * 8


def test_load_on_an_instance_warns_that_it_returns_a_new_agent(tmp_path):
    agent = small_agent()
    agent.save(tmp_path / "model")
    with pytest.warns(UserWarning, match="returns a new agent and leaves this one as it is"):
        loaded = agent.load(tmp_path / "model")
    assert loaded is not agent


# Wrong arguments


def test_one_object_in_two_places_is_refused():
    env = CueEnv()
    with pytest.raises(ValueError, match="environments 0 and 1 .* are the same object"):
        small_agent(SyncVectorEnv([lambda: env] * 2))


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"learningrate": 1}, TypeError, "'learningrate'. Did you mean 'learning_rate'"),
        ({"policy": "MlpPolic"}, ValueError, "'MlpPolic'. Did you mean 'MlpPolicy'"),
        ({"env": 3}, TypeError, "env must be an id.*got 3"),
        ({"device": "tpu"}, ValueError, "device must be"),
        ({"device": "cuda:9"}, ValueError, "asks for GPU 9"),
        ({"device": None}, ValueError, "device must be .*got 'None'"),
        ({"gamma": 2}, ValueError, "gamma must be in"),
        ({"seed": "a"}, TypeError, "seed must be a number, got 'a'"),
        ({"seed": -1}, ValueError, "seed must be a whole number of at least 0, got -1"),
        ({"policy_kwargs": [8]}, TypeError, r"policy_kwargs must be a dict .*got \[8\]"),
        ({"policy_kwargs": {"net_arhc": [3]}}, ValueError, "'net_arhc'. Did you mean 'net_arch'"),
    ],
)
def test_wrong_arguments(arguments, error, match):
    with pytest.raises(error, match=match):
        BatchPPO(**{"policy": "MlpPolicy", "env": vector(CueEnv), **arguments})


def test_load_refuses_an_unknown_argument(tmp_path):
    small_agent().save(tmp_path / "model")
    with pytest.raises(TypeError, match="'gama'. Did you mean 'gamma'"):
        BatchPPO.load(tmp_path / "model", gama=0.5)


def test_a_vector_environment_must_say_how_it_resets():
    env = vector(CueEnv)
    env.metadata = {}
    with pytest.raises(ValueError, match="autoreset_mode.*= None, expected"):
        small_agent(env)


def test_unsupported_spaces_are_refused_by_the_constructor():
    class Text(CueEnv):
        observation_space = gymnasium.spaces.Text(3)

    with pytest.raises(SpaceError, match="Text.*not supported"):
        small_agent(Text())


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"total_timesteps": 0}, ValueError, "total_timesteps must be a whole .* 1, got 0"),
        ({"total_timesteps": "100"}, TypeError, "total_timesteps must be a number, got '100'"),
        ({"total_timesteps": np.nan}, ValueError, "total_timesteps must be a whole"),
        ({"total_timesteps": np.inf}, ValueError, "total_timesteps must be a whole"),
        ({"total_timesteps": 8, "log_interval": 0}, ValueError, "log_interval .*got 0"),
        ({"total_timesteps": 8, "callback": 3}, TypeError, "callback must be"),
    ],
)
def test_learn_refuses_what_does_not_fit(arguments, error, match):
    with pytest.raises(error, match=match):
        small_agent().learn(**arguments)


def test_learn_takes_a_whole_number_of_any_type():
    assert small_agent().learn(6.4e1).num_timesteps == 64
    assert small_agent().learn(np.int64(64)).num_timesteps == 64


def test_numbers_of_numpy_can_be_saved(tmp_path):
    agent = small_agent(
        seed=np.int64(2**60 + 1), gamma=np.float32(0.5), n_epochs=np.int32(2), n_steps=16.0,
        learning_rate=np.float32(0.5),
        policy_kwargs={"log_std_init": np.float32(-1.0), "net_arch": [8]},
    )  # fmt: skip
    agent.save(tmp_path / "model")
    loaded = BatchPPO.load(tmp_path / "model")
    assert (loaded.config, loaded.seed) == (agent.config, 2**60 + 1)
    assert loaded.config.gamma == 0.5


def test_an_observation_outside_of_its_space_is_named():
    class Outside(CueEnv):
        def step(self, action):
            return 4, 0.0, False, False, {}  # one below the first: must not wrap around

    with pytest.raises(SpaceError, match=r"has 4 where its space allows .* in \[5, 8\)"):
        small_agent(vector(Outside)).learn(64)

    class Longer(TargetEnv):
        def reset(self, *, seed=None, options=None):
            return np.zeros(3, np.float32), {}

    with pytest.raises(SpaceError, match=r"returned an observation of shape \(3,\), its"):
        small_agent(Longer()).learn(64)
