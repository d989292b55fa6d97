"""Acting in one operation per rollout against acting in one call per step."""

import os
import threading

import numpy as np
import pytest
import tensorflow as tf
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from ppo_envs import CountingEnv, PictureAndWordEnv, PictureEnv

from batchppo import BatchPPO, acting, learner
from batchppo.acting import rollout_network
from batchppo.rollout import RolloutCollector

SMALL = {"features_dim": 8}
several_threads = pytest.mark.skipif(acting.tensorflow_threads() < 2, reason="one core only")


@pytest.fixture(autouse=True)
def _plain_graph(monkeypatch):
    monkeypatch.setattr(learner, "JIT_COMPILE", False)


def agent_in(env, policy):
    kwargs = {**SMALL, "recurrent_size": 4} if "Gru" in policy else SMALL
    return BatchPPO(policy, env, policy_kwargs=kwargs, n_steps=8, n_epochs=1, seed=0)


def looping(network):
    """Whether a network is inside of a loop, so not the policy's own."""
    with rollout_network(network) as chosen:
        return chosen is not network


def collect(agent, env, rollouts=2):
    collector = RolloutCollector(env, agent.policy, 8, 10, np.random.default_rng(0))
    collector.start(0)
    return [collector.collect(8 * i, 8, 1000) for i in range(rollouts)]


@several_threads
@pytest.mark.parametrize(
    ("policy", "env", "mode"),
    [
        ("CnnPolicy", PictureEnv, AutoresetMode.NEXT_STEP),
        ("CnnGruPolicy", PictureEnv, AutoresetMode.SAME_STEP),
        ("MultiInputPolicy", PictureAndWordEnv, AutoresetMode.DISABLED),
    ],
)
def test_both_ways_give_the_same_rollouts(policy, env, mode, monkeypatch):
    agent = agent_in(SyncVectorEnv([env] * 2, autoreset_mode=mode), policy)
    assert looping(agent.policy.network)
    fused = collect(agent, SyncVectorEnv([env] * 2, autoreset_mode=mode))
    monkeypatch.setattr(acting, "tensorflow_threads", lambda: 1)
    assert not looping(agent.policy.network)
    stepwise = collect(agent, SyncVectorEnv([env] * 2, autoreset_mode=mode))
    for one, other in zip(fused, stepwise, strict=True):
        rows, others = (r._replace(seconds={}) for r in (one, other))
        tf.nest.map_structure(np.testing.assert_array_equal, rows, others)
    assert fused[1].rewards.any()


def test_policies_in_numpy_stay_there():
    agent = BatchPPO("MlpGruPolicy", SyncVectorEnv([CountingEnv]), seed=0)
    assert not looping(agent.policy.network)


class Watching(PictureEnv):
    """Notes which threads step it."""

    def __init__(self, threads):
        self.threads = threads

    def step(self, action):
        self.threads.add(threading.current_thread())
        return super().step(action)


def test_steps_and_callbacks_are_in_the_callers_thread_and_may_use_the_policy():
    threads, seen = set(), []
    agent = agent_in(SyncVectorEnv([lambda: Watching(threads)] * 2), "CnnPolicy")

    def watch(locals_, _):
        action, _ = agent.predict(locals_["new_obs"], deterministic=True)
        seen.append((len(locals_["rewards"]), len(action), threading.current_thread()))

    agent.learn(16, callback=watch)
    here = threading.current_thread()
    assert threads == {here}
    assert seen == [(2, 2, here)] * 8


@several_threads
@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("mine")])
def test_what_ends_a_rollout_ends_its_loop(error):
    agent = agent_in(SyncVectorEnv([PictureEnv]), "CnnPolicy")
    calls = []

    def fail(locals_, _):
        calls.append(locals_)
        if len(calls) == 3:
            raise error

    with pytest.raises(type(error)) as caught:
        agent.learn(8, callback=fail)
    assert caught.value is error
    assert not [t for t in threading.enumerate() if t.name == "acting-loop"]
    assert looping(agent.policy.network)
    assert len(collect(agent, SyncVectorEnv([PictureEnv]), 1)) == 1


def test_a_thread_is_left_for_others(monkeypatch):
    monkeypatch.setattr(tf.config.threading, "get_inter_op_parallelism_threads", lambda: 2)
    first, second = (
        agent_in(SyncVectorEnv([PictureEnv]), "CnnPolicy").policy.network for _ in range(2)
    )
    with rollout_network(first) as chosen:
        assert chosen is not first
        assert not looping(first)
        assert not looping(second)
    assert looping(second)
    monkeypatch.setattr(tf.config.threading, "get_inter_op_parallelism_threads", lambda: 1)
    assert not looping(first)


def test_by_default_there_are_as_many_threads_as_cores():
    affinity = os.sched_getaffinity(0)
    assert acting.tensorflow_threads() == len(affinity)
