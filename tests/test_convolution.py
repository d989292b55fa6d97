"""A convolution with a gradient of its own against TensorFlow's."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from batchppo.convolution import Convolution, convolve


def gradients(function, images, kernel, weights):
    with tf.GradientTape() as tape:
        tape.watch([images, kernel])
        found = function(images, kernel)
        loss = tf.reduce_sum(found * weights)
    return [found, *tape.gradient(loss, [images, kernel])]


@pytest.mark.parametrize("strides", [(1, 1), (2, 2), (4, 2)])
def test_values_and_gradients_are_those_of_the_plain_operation(strides):
    rng = np.random.default_rng(0)
    images, kernel = (
        tf.constant(rng.normal(size=shape).astype("f")) for shape in ((3, 11, 12, 2), (4, 3, 2, 5))
    )

    def plain(images, kernel):
        return tf.nn.conv2d(images, kernel, strides, "VALID")

    weights = tf.constant(rng.normal(size=plain(images, kernel).shape).astype("f"))
    expected = gradients(plain, images, kernel, weights)
    found = gradients(lambda i, k: convolve(i, k, strides), images, kernel, weights)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("gpu", [False, True])
def test_the_layer_is_a_conv2d(gpu, monkeypatch):
    devices = ["one"] if gpu else []
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: devices)
    ours, theirs = (
        kind(5, 3, 2, activation="relu", kernel_initializer=keras.initializers.Orthogonal(seed=1))
        for kind in (Convolution, keras.layers.Conv2D)
    )
    images = tf.constant(np.random.default_rng(0).normal(size=(2, 9, 9, 3)).astype("f"))
    np.testing.assert_allclose(ours(images), theirs(images), atol=1e-5)
