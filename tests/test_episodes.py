"""Returns and lengths of episodes, from rewards or from what wrappers report."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics
from ppo_envs import CountingEnv

from batchppo.episodes import EpisodeStatistics
from batchppo.transitions import Stepper, Transitions


def step(rewards, terminated=None, truncated=None, valid=None, infos=None):
    n = len(rewards)

    def flags(values, default):
        return np.full(n, default) if values is None else np.array(values, bool)

    return Transitions(
        observations=None,
        rewards=np.array(rewards, np.float64),
        terminated=flags(terminated, False),
        truncated=flags(truncated, False),
        valid=flags(valid, True),
        starts=flags(None, False),
        final_observations=None,
        infos=infos or {},
    )


def test_returns_and_lengths():
    statistics = EpisodeStatistics(2, window=10)
    assert statistics.update(step([1, 10])) == []
    ended = statistics.update(step([2, 20], terminated=[1, 0]))
    assert [(e.env, e.return_, e.length, e.success) for e in ended] == [(0, 3.0, 2, None)]
    statistics.update(step([4, 30], truncated=[0, 1]))
    statistics.update(step([8, 0], terminated=[1, 0]))
    assert list(statistics.returns) == [3.0, 60.0, 12.0]
    assert list(statistics.lengths) == [2, 3, 2]
    assert statistics.count == 3


def test_rows_that_are_no_transitions_do_not_count():
    statistics = EpisodeStatistics(1, window=10)
    statistics.update(step([5], valid=[0]))
    statistics.update(step([1], terminated=[1]))
    statistics.update(step([99], truncated=[1], valid=[0]))
    assert list(statistics.returns) == [1.0]
    assert list(statistics.lengths) == [1]


def test_the_window_keeps_the_last_ones():
    statistics = EpisodeStatistics(1, window=2)
    for reward in (1, 2, 3):
        statistics.update(step([reward], terminated=[1]))
    assert list(statistics.returns) == [2.0, 3.0]
    assert statistics.count == 3


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_what_a_wrapper_reports_is_taken(mode):
    class Doubled(CountingEnv):
        """Reports returns that are not the sum of its rewards."""

        def step(self, action):
            *rest, done, truncated, _ = super().step(action)
            info = {"is_success": self.episode % 2 == 0}
            if done or truncated:
                info["episode"] = {"r": 1000.0 + self.episode, "l": 7}
            return (*rest, done, truncated, info)

    env = SyncVectorEnv([Doubled], autoreset_mode=mode)
    stepper, statistics = Stepper(env), EpisodeStatistics(1, window=10)
    stepper.reset()
    for _ in range(12):
        statistics.update(stepper.step(np.array([0])))
    assert list(statistics.returns)[:3] == [1000.0, 1001.0, 1002.0]
    assert list(statistics.lengths)[:3] == [7, 7, 7]
    assert list(statistics.successes)[:3] == [1.0, 0.0, 1.0]


def test_gymnasium_s_own_wrapper_agrees_with_our_count():
    plain = SyncVectorEnv([CountingEnv] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    wrapped = SyncVectorEnv(
        [lambda: RecordEpisodeStatistics(CountingEnv())] * 2, autoreset_mode=AutoresetMode.SAME_STEP
    )
    figures = []
    for env in (plain, wrapped):
        stepper, statistics = Stepper(env), EpisodeStatistics(2, window=50)
        stepper.reset()
        for _ in range(30):
            statistics.update(stepper.step(np.zeros(2, np.int64)))
        figures.append((list(statistics.returns), list(statistics.lengths)))
    assert figures[0] == figures[1]
