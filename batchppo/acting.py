"""How a policy acts during a rollout: the one place where that is chosen."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf

from batchppo.graph_network import GraphNetwork
from batchppo.policy import PolicyNetwork


@contextmanager
def rollout_network(network: PolicyNetwork) -> Iterator[PolicyNetwork]:
    """Gives what computes a network's parameters for the steps of one rollout.

    Networks in NumPy are called as they are: up to usual sizes that is faster than anything
    TensorFlow does. Networks in TensorFlow run in one operation for the whole rollout. Both ways
    give the same numbers.

    Args:
        network: the acting network of a policy.
    """
    if isinstance(network, GraphNetwork) and _several_threads() and not network.is_looping:
        with network.looping() as looping:
            yield looping
    else:
        yield network


def _several_threads() -> bool:
    """Returns whether TensorFlow has a thread left while an operation waits for a step.

    With one alone, a callback that asks the policy for an action would wait for ever.
    """
    threads = tf.config.threading.get_inter_op_parallelism_threads()
    if not threads:  # as many as there are cores
        affinity = getattr(os, "sched_getaffinity", None)
        threads = (os.cpu_count() or 1) if affinity is None else len(affinity(0))
    return bool(threads > 1)
