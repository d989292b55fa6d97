"""Three autoreset modes, one story."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from ppo_envs import CountingEnv

import batchgym
from batchppo.advantages import generalized_advantages
from batchppo.environments import as_vector_env
from batchppo.transitions import Stepper

MODES = list(AutoresetMode)
NUM_ENVS = 3
STEPS = 40


def env_fns():
    return [lambda i=i: CountingEnv(i) for i in range(NUM_ENVS)]


VECTOR_ENVS = {
    "sync": lambda mode: SyncVectorEnv(env_fns(), autoreset_mode=mode),
    "async": lambda mode: AsyncVectorEnv(env_fns(), autoreset_mode=mode),
    "process": lambda mode: batchgym.ProcessVectorEnv(env_fns(), autoreset_mode=mode),
}


def played(env):
    """Returns each environment's valid transitions, as (observation, reward, flags, next)."""
    stepper = Stepper(env)
    observations = stepper.reset()[0].copy()
    story = [[] for _ in range(NUM_ENVS)]
    for _ in range(STEPS):
        step = stepper.step(np.zeros(NUM_ENVS, np.int64))
        final = iter(step.final_observations if step.final_observations is not None else ())
        following = np.array(step.observations)
        for i in range(NUM_ENVS):
            truncated = bool(step.truncated[i])
            next_observation = next(final) if truncated else following[i]
            if not step.valid[i]:
                continue
            terminated = bool(step.terminated[i])
            # What follows a termination is never looked at.
            seen = None if terminated else tuple(map(float, next_observation))
            reward = float(step.rewards[i])
            story[i].append(
                (tuple(map(float, observations[i])), reward, terminated, truncated, seen)
            )
        observations = following
    env.close()
    return story


def foretold(identity, length):
    """The same story from the environment's definition."""
    story = []
    for episode in range(length):
        last = 2 + (identity + episode) % 4
        for t in range(last):
            done = t + 1 == last
            before, after = ((identity, episode, count) for count in (t, t + 1))
            terminated = done and episode % 2 == 0
            reward = 100.0 * identity + 10.0 * episode + t + 1
            truncated = done and not terminated
            story.append((before, reward, terminated, truncated, None if terminated else after))
    return story[:length]


@pytest.mark.parametrize("kind", VECTOR_ENVS)
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_tells_the_story_of_the_environment(kind, mode):
    for i, story in enumerate(played(VECTOR_ENVS[kind](mode))):
        assert len(story) >= STEPS * 0.7
        assert story == foretold(i, len(story))


def story_advantages(story):
    """GAE over one environment's story, with V(s) = 7 * episode + step as the value."""
    value = lambda observation: 7.0 * observation[1] + observation[2]  # noqa: E731
    columns = [
        [row[1] for row in story],
        [value(row[0]) for row in story],
        [0.0 if row[4] is None else value(row[4]) for row in story],
    ]
    flags = [[row[2] for row in story], [row[3] for row in story], [True] * len(story)]
    arrays = [np.array(column)[:, None] for column in (*columns, *flags)]
    return generalized_advantages(*arrays, gamma=0.9, gae_lambda=0.8)[:, 0]


def test_every_mode_gives_the_same_advantages():
    stories = {mode: played(VECTOR_ENVS["process"](mode)) for mode in MODES}
    for i in range(NUM_ENVS):
        length = min(len(story[i]) for story in stories.values())
        # Cut at the last common episode's end: behind it the horizon differs.
        ends = [t for t, row in enumerate(stories[MODES[0]][i][:length]) if row[2] or row[3]]
        cut = ends[-1] + 1
        first, *others = (story_advantages(story[i][:cut]) for story in stories.values())
        for other in others:
            assert other == pytest.approx(first)


def test_a_single_environment_keeps_its_final_observation():
    env = CountingEnv(1)
    stepper = Stepper(as_vector_env(env))
    stepper.reset()
    finals = []
    for _ in range(12):
        step = stepper.step(np.array([0]))
        if step.truncated[0]:
            finals.append(step.final_observations[0].tolist())
    assert finals[0] == [1, 1, 4]  # environment 1, episode 1: 2 + (1 + 1) % 4 steps


def test_termination_weighs_more_than_truncation():
    class Both(CountingEnv):
        def step(self, action):
            return self._observation(), 1.0, True, True, {}

    stepper = Stepper(as_vector_env(Both()))
    stepper.reset()
    step = stepper.step(np.array([0]))
    assert step.terminated[0]
    assert not step.truncated[0]
    assert step.final_observations is None


def test_an_environment_that_reuses_its_memory_does_not_spoil_the_final_observation():
    class Reusing(CountingEnv):
        def __init__(self):
            super().__init__(0)
            self.memory = np.zeros(3, np.float32)

        def _observation(self):
            self.memory[:] = super()._observation()
            return self.memory

    stepper = Stepper(as_vector_env(Reusing()))
    stepper.reset()
    steps = [stepper.step(np.array([0])) for _ in range(5)]
    assert steps[-1].truncated[0]
    assert steps[-1].final_observations[0].tolist() == [0, 1, 3]


def test_a_replaced_worker_s_rows_are_no_transitions():
    class Restarted(gymnasium.vector.VectorWrapper):
        def step(self, actions):
            *rest, _ = self.env.step(actions)
            return (*rest, {"worker_restarted": np.array([False, True, False])})

    stepper = Stepper(Restarted(VECTOR_ENVS["sync"](AutoresetMode.SAME_STEP)))
    stepper.reset()
    assert stepper.step(np.zeros(3, np.int64)).valid.tolist() == [True, False, True]


class Fails(CountingEnv):
    def step(self, action):
        raise ZeroDivisionError


OURS = {
    "workers": lambda fns: batchgym.ProcessVectorEnv(fns, num_workers=2),
    "owner": lambda fns: batchgym.ProcessVectorEnv(fns, num_workers=1, owner_steps=True),
    "wrapped": lambda fns: gymnasium.wrappers.vector.RecordEpisodeStatistics(
        batchgym.ProcessVectorEnv(fns)
    ),
}
LEFT_ALONE = [
    pytest.param(AsyncVectorEnv, CountingEnv, id="async"),
    *(pytest.param(make, CountingEnv, id=name) for name, make in OURS.items()),
    # After a failure Gymnasium's can only be closed.
    *(pytest.param(make, Fails, id=f"{name}, failing") for name, make in OURS.items()),
]


@pytest.mark.filterwarnings("ignore:.*ERROR")
@pytest.mark.parametrize(("make", "last"), LEFT_ALONE)
def test_a_reset_lets_go_of_a_step_that_ctrl_c_left_on_its_way(make, last):
    env = make([lambda: CountingEnv(0), lambda: CountingEnv(1), lambda: last(2)])
    stepper = Stepper(env)
    stepper.reset(seed=0)
    env.unwrapped.step_async(np.zeros(3, np.int64))
    observations, _ = stepper.reset(seed=1)
    assert observations.shape == env.observation_space.shape
    env.close()


def test_truncation_without_a_final_observation_is_refused():
    class Forgetful(gymnasium.vector.VectorWrapper):
        def step(self, actions):
            *rest, _ = self.env.step(actions)
            return (*rest, {})

    stepper = Stepper(Forgetful(VECTOR_ENVS["sync"](AutoresetMode.SAME_STEP)))
    stepper.reset()

    def play():
        for _ in range(10):
            stepper.step(np.zeros(3, np.int64))

    with pytest.raises(ValueError, match="final_obs"):
        play()
