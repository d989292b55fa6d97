"""How a policy acts during a rollout: the one place where that is chosen."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf

from batchppo.graph_network import GraphNetwork
from batchppo.policy import PolicyNetwork

_LOCK = threading.Lock()
_LOOPING: set[GraphNetwork] = set()


@contextmanager
def rollout_network(network: PolicyNetwork) -> Iterator[PolicyNetwork]:
    """Gives what computes a network's parameters for the steps of one rollout.

    Networks in NumPy are called as they are: up to usual sizes that is faster than anything
    TensorFlow does. Two cores, per step of 8 and of 64 environments: dense 64-64 takes 25 and 145
    microseconds (a loop in TensorFlow 370 and 670), an LSTM of 256 takes 310 and 1,000 (500 and
    1,110), a GRU of 256 takes 240 and 750 (590 and 1,190); `benchmarks/simulate.py` measures it.
    Networks in TensorFlow run in one operation for the whole rollout, which gives the same numbers
    as a call per step.

    Args:
        network: the acting network of a policy.
    """
    if not (isinstance(network, GraphNetwork) and _begin(network)):
        yield network
        return
    try:
        with network.looping() as looping:
            yield looping
    finally:
        with _LOCK:
            _LOOPING.remove(network)


def _begin(network: GraphNetwork) -> bool:
    """Returns whether a network may run in a loop, and counts it as running if so.

    While a loop waits for the environments' step it holds one of TensorFlow's threads. Another has
    to be left, or a callback that asks a policy for an action would wait for ever.
    """
    with _LOCK:
        free = tensorflow_threads() - len(_LOOPING)
        if free < 2 or network in _LOOPING:
            return False
        _LOOPING.add(network)
        return True


def tensorflow_threads() -> int:
    """Returns how many operations TensorFlow runs at the same time."""
    threads = int(tf.config.threading.get_inter_op_parallelism_threads())
    if threads:
        return threads
    # Its default is as many as there are cores for this process.
    affinity = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if affinity is None else len(affinity(0))
