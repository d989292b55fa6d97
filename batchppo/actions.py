"""Distributions over actions, acting side, in NumPy.

A distribution is described by the row of parameters that the policy network puts out. Sampling is
a pure function of parameters and noise, so that NumPy and TensorFlow draw the same action from the
same noise. `distributions.py` has the learning side: log-probability, entropy and divergence.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from batchppo.errors import SpaceError

FloatArray = NDArray[np.floating]

LOG_STD_BOUNDS = (-20.0, 4.0)
"""Where the logarithm of a standard deviation is clipped, so that exp() stays finite."""


class ActionDistribution(Protocol):
    """A family of distributions over the actions of one space.

    Attributes:
        space: the action space of one environment.
        parameter_size: how many parameters describe one distribution.
        free_size: how many of them, the last ones, do not depend on the observation.
        action_shape: the shape of one action as it is stored for learning.
        action_dtype: its type.
    """

    @property
    def space(self) -> spaces.Space[Any]: ...  # noqa: D102 - see the class
    @property
    def parameter_size(self) -> int: ...  # noqa: D102
    @property
    def free_size(self) -> int: ...  # noqa: D102
    @property
    def action_shape(self) -> tuple[int, ...]: ...  # noqa: D102
    @property
    def action_dtype(self) -> type[np.generic]: ...  # noqa: D102

    def draw_noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Returns the noise that `sample` needs for distributions of the given leading shape."""

    def sample(self, parameters: FloatArray, noise: FloatArray) -> NDArray[Any]:
        """Returns one action per row of parameters, shape [n, *action_shape]."""

    def mode(self, parameters: FloatArray) -> NDArray[Any]:
        """Returns each distribution's most likely action, shape [n, *action_shape]."""

    def to_environment(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Returns stored actions as the batch that the environments take, shape [n, ...]."""


class DiagonalGaussian:
    """Independent normal distributions for a Box; parameters are means, then log-deviations.

    The stored action is the sample itself; only what the environment gets is clipped to the
    space's bounds (infinite bounds clip nothing).
    """

    action_dtype = np.float32

    def __init__(self, space: spaces.Box) -> None:
        self.space = space
        self._size = int(np.prod(space.shape))
        self.parameter_size = 2 * self._size
        self.free_size = self._size
        self.action_shape = (self._size,)

    def draw_noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Returns standard normal noise, shape [*shape, actions]."""
        return rng.standard_normal((*shape, self._size), np.float32)

    def sample(self, parameters: FloatArray, noise: FloatArray) -> NDArray[np.float32]:
        """Returns mean + exp(log_std) * noise."""
        mean, log_std = parameters[:, : self._size], parameters[:, self._size :]
        return np.asarray(mean + np.exp(np.clip(log_std, *LOG_STD_BOUNDS)) * noise, np.float32)

    def mode(self, parameters: FloatArray) -> NDArray[np.float32]:
        """Returns the means."""
        return parameters[:, : self._size].astype(np.float32, copy=False)

    def to_environment(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Returns the actions in the space's shape and type, clipped to its bounds."""
        shaped = actions.reshape(len(actions), *self.space.shape)
        return np.asarray(np.clip(shaped, self.space.low, self.space.high), self.space.dtype)


class Categorical:
    """One choice of n for a Discrete space; parameters are the logits.

    The stored action counts from 0, whatever the space's start.
    """

    action_dtype = np.int32
    action_shape: tuple[int, ...] = ()
    free_size = 0

    def __init__(self, space: spaces.Discrete) -> None:
        self.space = space
        self.parameter_size = int(space.n)

    def draw_noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Returns standard Gumbel noise, shape [*shape, n]."""
        uniform = rng.random((*shape, self.parameter_size), np.float32)
        # From (0, 1] rather than [0, 1): the logarithm of 0 must not come up.
        return -np.log(-np.log1p(-uniform) + np.float32(1e-30))

    def sample(self, parameters: FloatArray, noise: FloatArray) -> NDArray[np.int32]:
        """Returns argmax(logits + noise), a draw from softmax(logits) for Gumbel noise."""
        return np.asarray(np.argmax(parameters + noise, axis=-1), np.int32)

    def mode(self, parameters: FloatArray) -> NDArray[np.int32]:
        """Returns the choice with the largest logit."""
        return np.asarray(np.argmax(parameters, axis=-1), np.int32)

    def to_environment(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Returns the choices counted from the space's start, in its type."""
        return actions.astype(self.space.dtype) + self.space.start


def action_distribution(space: spaces.Space[Any]) -> ActionDistribution:
    """Returns the distribution for an action space.

    Raises:
        SpaceError: a space that is not supported.
    """
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return DiagonalGaussian(space)
    if isinstance(space, spaces.Discrete):
        return Categorical(space)
    raise SpaceError(
        f"actions of {space} are not supported; supported are Box of floats and Discrete. "
        f"gymnasium.wrappers.TransformAction can map one of these to it"
    )
