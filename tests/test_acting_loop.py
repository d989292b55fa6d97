"""A function of TensorFlow operations that is called from inside of one operation."""

import os
import signal
import threading

import numpy as np
import pytest
import tensorflow as tf

from batchppo.acting_loop import ActingLoop

SPECS = {"x": tf.TensorSpec((None, 2), tf.float32)}


def test_a_loop_computes_what_its_function_does():
    loop = ActingLoop(lambda inputs: (inputs["x"] * 2, inputs["x"][:, 0]), SPECS, "/CPU:0")
    for _ in range(2):
        with loop.running() as call:
            for i in range(20):
                x = np.full((3, 2), i, np.float32)
                twice, first = call({"x": x})
                np.testing.assert_array_equal(twice, 2 * x)
                np.testing.assert_array_equal(first, x[:, 0])


def test_a_loop_that_is_never_called_ends():
    with ActingLoop(lambda inputs: inputs["x"], SPECS, "/CPU:0").running():
        pass
    assert not [t for t in threading.enumerate() if t.name == "acting-loop"]


def test_an_error_of_the_function_reaches_the_caller():
    def checked(inputs):
        with tf.control_dependencies([tf.debugging.assert_less(inputs["x"], 3.0)]):
            return tf.identity(inputs["x"])

    loop = ActingLoop(checked, SPECS, "/CPU:0")
    for _ in range(2):
        with loop.running() as call:
            call({"x": np.ones((1, 2), np.float32)})
            with pytest.raises(tf.errors.InvalidArgumentError):
                call({"x": np.full((1, 2), 5, np.float32)})
        assert not [t for t in threading.enumerate() if t.name == "acting-loop"]


def test_ctrl_c_is_heard_while_it_computes():
    interrupted = threading.Event()

    def slow(x):
        if x[0, 0]:
            os.kill(os.getpid(), signal.SIGINT)
            interrupted.wait(5)
        return x

    def function(inputs):
        return tf.numpy_function(slow, [inputs["x"]], tf.float32)

    loop = ActingLoop(function, SPECS, "/CPU:0")
    with loop.running() as call:
        call({"x": np.zeros((1, 2), np.float32)})
        with pytest.raises(KeyboardInterrupt):
            call({"x": np.ones((1, 2), np.float32)})
        interrupted.set()
    assert not [t for t in threading.enumerate() if t.name == "acting-loop"]
