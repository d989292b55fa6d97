"""A policy network that acts for a whole rollout in one TensorFlow operation."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from batchppo.compilation import compiled

Arrays: TypeAlias = dict[str, NDArray[Any]]
Call: TypeAlias = Callable[[Arrays], list[NDArray[Any]]]


class ActingLoop:
    """Calls a function of TensorFlow operations again and again inside of one operation.

    Calling a TensorFlow function from Python costs several times what a small network computes.
    Here the function is called in a `tf.while_loop`, which runs in a thread of its own; each of its
    steps hands out a result and waits for the next arguments. So the environments are stepped by
    the caller, in the caller's thread: Ctrl-C, exceptions, callbacks and environments that belong
    to a thread are what they are without the loop.

    Args:
        function: from a dict of tensors to a tensor or several.
        specs: what its arguments look like.
        device: where to compute.
    """

    def __init__(
        self, function: Callable[..., Any], specs: Mapping[str, tf.TensorSpec], device: str
    ) -> None:
        self._function = function
        self._specs = dict(specs)
        self._device = device
        self._arguments: SimpleQueue[list[Any]] = SimpleQueue()
        self._results: SimpleQueue[Any] = SimpleQueue()
        self._loop = compiled(self._steps, input_signature=[self._specs])

    @contextmanager
    def running(self) -> Iterator[Call]:
        """Gives a function that computes what `function` does; one context at a time."""
        self._arguments, self._results = SimpleQueue(), SimpleQueue()
        thread: threading.Thread | None = None
        leaves: list[Any] = []

        def call(arguments: Arrays) -> list[NDArray[Any]]:
            nonlocal thread, leaves
            leaves = [arguments[name] for name in self._specs]
            if thread is None:
                thread = threading.Thread(target=self._run, args=(arguments,), name="acting-loop")
                thread.start()
            else:
                self._arguments.put([np.True_, *leaves])
            result = self._results.get()
            if isinstance(result, BaseException):
                raise result
            return list(result)

        try:
            yield call
        finally:
            if thread is not None:
                self._arguments.put([np.False_, *leaves])
                thread.join()

    def _run(self, arguments: Arrays) -> None:
        try:
            with tf.device(self._device):
                self._loop({name: tf.constant(arguments[name]) for name in self._specs})
        except Exception as error:  # noqa: BLE001 - raised again in the thread that waits
            self._results.put(error)

    def _steps(self, arguments: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns how often the function was called, once the caller has had enough."""
        types = [tf.bool, *(spec.dtype for spec in self._specs.values())]

        def body(count: tf.Tensor, go_on: tf.Tensor, arguments: dict[str, tf.Tensor]) -> Any:
            results = tf.nest.flatten(self._function(arguments))
            go_on, *leaves = tf.numpy_function(self._exchange, results, types)
            go_on.set_shape(())
            for leaf, spec in zip(leaves, self._specs.values(), strict=True):
                leaf.set_shape(spec.shape)
            return count + 1, go_on, dict(zip(self._specs, leaves, strict=True))

        first = (tf.constant(0), tf.constant(True), arguments)
        count, *_ = tf.while_loop(lambda _, go_on, __: go_on, body, first, parallel_iterations=1)
        return count

    def _exchange(self, *results: NDArray[Any]) -> list[Any]:
        # Copied: TensorFlow may use their memory again behind this call.
        self._results.put([np.array(result) for result in results])
        return self._arguments.get()
