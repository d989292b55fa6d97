"""Layers as users write them."""

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="tests")
class Tower(keras.layers.Layer):
    """Makes two dense layers itself; needs no `get_config`, since its arguments are plain."""

    def __init__(self, width=8, **kwargs):
        super().__init__(**kwargs)
        self.width = width
        self.first = keras.layers.Dense(width, activation="tanh")
        self.second = keras.layers.Dense(width, activation="tanh")

    def call(self, rows):
        return self.second(self.first(rows))


@keras.saving.register_keras_serializable(package="tests")
class Scale(keras.layers.Layer):
    """Multiplies by weights, one of which is frozen, made in `build`."""

    def build(self, shape):
        self.factor = self.add_weight(shape=(shape[-1],), initializer="ones")
        self.offset = self.add_weight(shape=(shape[-1],), initializer="zeros", trainable=False)

    def call(self, rows):
        return tf.reshape(rows * self.factor + self.offset, (tf.shape(rows)[0], rows.shape[-1]))


@keras.saving.register_keras_serializable(package="tests")
class Combined(keras.layers.Layer):
    """A custom extractor for a Dict, as in Stable-Baselines3's documentation."""

    def __init__(self, pixels=16, **kwargs):
        super().__init__(**kwargs)
        self.pixels = pixels
        self.eye = keras.Sequential(
            [keras.layers.Conv2D(4, 6, 6, activation="relu"), keras.layers.Flatten()]
        )
        self.dense = keras.layers.Dense(pixels, activation="relu")

    def call(self, observation):
        return keras.ops.concatenate(
            [self.dense(self.eye(observation["picture"])), observation["word"]], axis=-1
        )


class Stranger(keras.layers.Layer):
    """Nobody registered it."""

    def call(self, rows):
        return rows
