"""The mock environment, and the mock agent that plays in it."""

import functools

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import batchgym
from batchgym import MockEnv
from batchppo import BatchPPO, RandomPolicy, evaluate_policy
from batchppo.errors import SpaceError

BOX = spaces.Box(-1, 1, (3,), np.float32)
ACTIONS = {
    "box": spaces.Box(-1, 1, (2,), np.float32),
    "discrete": spaces.Discrete(3, start=5),
    "choices": spaces.MultiDiscrete([2, 3]),
}


def played(env, seed):
    """Observations, rewards and flags of two episodes."""
    action = env.action_space.sample()
    story = [env.reset(seed=seed)[0].tolist()]
    for _ in range(2):
        done = False
        while not done:
            observation, reward, terminated, truncated, _ = env.step(action)
            story.append((observation.tolist(), reward, terminated, truncated))
            done = terminated or truncated
        story.append(env.reset()[0].tolist())
    return story


@pytest.mark.parametrize("action_space", ACTIONS.values(), ids=ACTIONS)
def test_gymnasium_has_nothing_to_say_about_it(action_space):
    check_env(MockEnv(BOX, action_space, max_steps=5), skip_render_check=True)


def test_everything_follows_from_the_seed():
    assert played(MockEnv(BOX, ACTIONS["box"]), 3) == played(MockEnv(BOX, ACTIONS["box"]), 3)
    assert played(MockEnv(BOX, ACTIONS["box"]), 3) != played(MockEnv(BOX, ACTIONS["box"]), 4)


@pytest.mark.parametrize("truncates", [False, True])
def test_episodes_are_as_long_as_they_may_be_and_end_as_asked(truncates):
    env = MockEnv(BOX, ACTIONS["discrete"], 2, 4, truncates)
    for _ in range(100):
        env.reset()
        for step in range(1, env.lengths[-1] + 1):
            _, reward, *flags, _ = env.step(6)
            assert -1.0 <= reward <= 1.0
            assert flags == [step == env.lengths[-1] and not truncates,
                             step == env.lengths[-1] and truncates]  # fmt: skip
    assert set(env.lengths) == {2, 3, 4}


def test_it_is_strict():
    env = MockEnv(BOX, ACTIONS["box"], 1, 1)
    with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
        env.step(np.zeros(2, np.float32))
    env.reset()
    with pytest.raises(ValueError, match="is no action of Box"):
        env.step(np.full(2, 3.0, np.float32))
    env.step(np.zeros(2, np.float32))
    with pytest.raises(RuntimeError, match="the episode has ended"):
        env.step(np.zeros(2, np.float32))
    with pytest.raises(ValueError, match="1 <= min_steps <= max_steps, got 3 and 2"):
        MockEnv(BOX, ACTIONS["box"], 3, 2)


def test_an_agent_sends_nothing_outside_of_its_space():
    """In processes, where an action outside would come back as an error."""
    make = functools.partial(MockEnv, BOX, ACTIONS["box"])
    env = batchgym.ProcessVectorEnv([make] * 3, num_workers=2)
    agent = BatchPPO("MlpPolicy", env, n_steps=20, policy_kwargs={"log_std_init": 2.0}, seed=0)
    agent._collector.start(0)
    rollout = agent._collector.collect(0, 20, goal=60)
    assert np.abs(rollout.actions).max() > 1.0  # what is stored is from before the clipping
    env.close()


@pytest.mark.parametrize("action_space", ACTIONS.values(), ids=ACTIONS)
def test_a_random_policy_takes_an_agents_place(action_space):
    env = batchgym.ProcessVectorEnv(
        [functools.partial(MockEnv, BOX, action_space, 4, 4)] * 2,
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    policy = RandomPolicy(BOX, action_space, seed=0)
    returns, lengths = evaluate_policy(policy, env, 6, return_episode_rewards=True)
    env.close()
    assert lengths == [4] * 6
    assert len(set(returns)) == 6


def test_a_random_policy_follows_from_its_seed_and_leaves_the_space_alone():
    space = spaces.Box(-1, 1, (2,), np.float32, seed=1)
    expected = spaces.Box(-1, 1, (2,), np.float32, seed=1).sample()
    observations = np.zeros((4, 3), np.float32)
    first, second = (RandomPolicy(BOX, space, seed=7).predict(observations)[0] for _ in range(2))
    assert first.tolist() == second.tolist()
    assert first.shape == (4, 2)
    assert len({tuple(action) for action in first.tolist()}) == 4
    assert space.sample().tolist() == expected.tolist()
    single, state = RandomPolicy(BOX, space, seed=7).predict(observations[0], deterministic=True)
    assert (single.tolist(), state) == (first[0].tolist(), None)


def test_a_random_policy_refuses_observations_that_do_not_fit():
    with pytest.raises(SpaceError):
        RandomPolicy(BOX, ACTIONS["box"]).predict(np.zeros(5, np.float32))
