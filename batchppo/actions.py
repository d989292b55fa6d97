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

MIN_RAW_STD = -20.0
"""From where on down the number whose softplus is a deviation makes no smaller one."""


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
        low, high = LOG_STD_BOUNDS
        deviation = np.exp(np.minimum(np.maximum(log_std, np.float32(low)), np.float32(high)))
        return np.asarray(mean + deviation * noise, np.float32)

    def mode(self, parameters: FloatArray) -> NDArray[np.float32]:
        """Returns the means."""
        return parameters[:, : self._size].astype(np.float32, copy=False)

    def to_environment(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Returns the actions in the space's shape and type, clipped to its bounds."""
        shaped = actions.reshape(len(actions), *self.space.shape)
        clipped: FloatArray = np.minimum(np.maximum(shaped, self.space.low), self.space.high)
        return clipped.astype(self.space.dtype, copy=False)


class SquashedGaussian(DiagonalGaussian):
    """tanh of independent normal distributions, scaled to a Box's bounds.

    The stored action is the sample before the tanh, from which its log-probability is exact.
    """

    def __init__(self, space: spaces.Box) -> None:
        super().__init__(space)
        if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
            raise SpaceError(
                f"squash_output=True needs finite action bounds, got {space}; leave it out, or "
                f"bound the actions with gymnasium.wrappers.RescaleAction"
            )
        self.scale = ((space.high - space.low) / 2).ravel().astype(np.float32)

    def to_environment(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Returns low + (tanh(u) + 1) / 2 * (high - low), in the space's shape and type."""
        shaped = np.tanh(actions).reshape(len(actions), *self.space.shape)
        scaled = self.space.low + (shaped + 1.0) * 0.5 * (self.space.high - self.space.low)
        # Rounding must not lead out of the space.
        return super().to_environment(scaled)


class StateDependentNoise(DiagonalGaussian):
    """Generalized state-dependent exploration (Raffin et al. 2021, arXiv:2005.05719).

    The noise is a linear function of what the policy's last hidden layer puts out, drawn anew every
    `sample_freq` steps: the same state gets the same noise in between, and motions are smooth.
    Acting parameters have the features times the deviations of their noise behind them.
    """

    def __init__(self, space: spaces.Box, latent_size: int, sample_freq: int) -> None:
        super().__init__(space)
        self._latent_size = latent_size
        self._sample_freq = sample_freq

    def draw_noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Returns matrices of standard normal noise, shape [*shape, latent_size * actions].

        A shape of [T, N] gets one matrix per environment and `sample_freq` steps.
        """
        size = self._latent_size * self._size
        if len(shape) == 1 or self._sample_freq == 1:
            return rng.standard_normal((*shape, size), np.float32)
        steps, *rest = shape
        length = steps if self._sample_freq < 1 else self._sample_freq
        drawn = rng.standard_normal((-(-steps // length), *rest, size), np.float32)
        return drawn.repeat(length, axis=0)[:steps]

    def sample(self, parameters: FloatArray, noise: FloatArray) -> NDArray[np.float32]:
        """Returns mean + sum_j (features_j deviation_jk noise_jk)."""
        shape = (len(parameters), self._latent_size, self._size)
        mean, scaled = parameters[:, : self._size], parameters[:, 2 * self._size :]
        drawn = np.einsum("njk,njk->nk", scaled.reshape(shape), noise.reshape(shape))
        return np.asarray(mean + drawn, np.float32)


class StateDependentGaussian(StateDependentNoise):
    """State-dependent noise, clipped to the space's bounds."""


class StateDependentSquashed(StateDependentNoise, SquashedGaussian):
    """State-dependent noise that goes through tanh."""


class Choices:
    """Independent choices for Discrete and MultiDiscrete; parameters are logits side by side.

    Stored actions count from 0, whatever the space's start.
    """

    action_dtype = np.int32
    free_size = 0

    def __init__(self, space: spaces.Discrete | spaces.MultiDiscrete) -> None:
        self.space = space
        counts = [space.n] if isinstance(space, spaces.Discrete) else space.nvec.ravel()
        self.counts = tuple(int(count) for count in counts)
        self.parameter_size = sum(self.counts)
        # One choice is a number, as the environments take it; several are a vector.
        self.action_shape = () if isinstance(space, spaces.Discrete) else (len(self.counts),)
        self._borders = np.cumsum(self.counts)[:-1]

    def draw_noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Returns standard Gumbel noise, shape [*shape, sum of counts]."""
        uniform = rng.random((*shape, self.parameter_size), np.float32)
        # From (0, 1] rather than [0, 1): the logarithm of 0 must not come up.
        return -np.log(-np.log1p(-uniform) + np.float32(1e-30))

    def sample(self, parameters: FloatArray, noise: FloatArray) -> NDArray[np.int32]:
        """Returns argmax(logits + noise), a draw from softmax(logits) for Gumbel noise."""
        return self.mode(parameters + noise)

    def mode(self, parameters: FloatArray) -> NDArray[np.int32]:
        """Returns the choices with the largest logits."""
        if len(self.counts) == 1:
            chosen: NDArray[np.int32] = parameters.argmax(axis=-1).astype(np.int32)
            return chosen if self.action_shape == () else chosen[:, None]
        parts = np.split(parameters, self._borders, axis=-1)
        return np.stack([np.argmax(part, axis=-1) for part in parts], axis=-1).astype(np.int32)

    def to_environment(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Returns the choices counted from the space's start, in its shape and type."""
        counted: NDArray[Any] = self._shaped(actions) + self.space.start
        return counted.astype(self.space.dtype, copy=False)

    def _shaped(self, actions: NDArray[Any]) -> NDArray[Any]:
        shape = self.space.shape or ()
        return actions if self.action_shape == shape else actions.reshape(len(actions), *shape)


class Bernoulli:
    """Independent yes or no for MultiBinary; parameters are the logits of yes."""

    action_dtype = np.int32
    free_size = 0

    def __init__(self, space: spaces.MultiBinary) -> None:
        self.space = space
        self.parameter_size = int(np.prod(space.shape))
        self.action_shape = (self.parameter_size,)

    def draw_noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Returns standard logistic noise, shape [*shape, n]."""
        uniform = rng.random((*shape, self.parameter_size), np.float32)
        uniform = np.clip(uniform, np.float32(1e-7), np.float32(1.0 - 1e-7))
        return np.log(uniform) - np.log1p(-uniform)

    def sample(self, parameters: FloatArray, noise: FloatArray) -> NDArray[np.int32]:
        """Returns logits + noise > 0, which is yes with probability sigmoid(logits)."""
        return self.mode(parameters + noise)

    def mode(self, parameters: FloatArray) -> NDArray[np.int32]:
        """Returns yes where it is more likely than no."""
        return np.asarray(parameters > 0, np.int32)

    def to_environment(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Returns the answers in the space's shape and type."""
        return actions.reshape(len(actions), *self.space.shape).astype(self.space.dtype)


def action_distribution(
    space: spaces.Space[Any],
    squash: bool = False,
    latent_size: int | None = None,
    sample_freq: int = -1,
) -> ActionDistribution:
    """Returns the distribution for an action space.

    Args:
        space: the action space of one environment.
        squash: whether actions of a Box go through tanh instead of being clipped.
        latent_size: how many features state-dependent noise has; None for independent noise.
        sample_freq: steps between two draws of state-dependent noise; -1 for one a rollout.

    Raises:
        SpaceError: a space that is not supported.
    """
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        if latent_size is not None:
            kind = StateDependentSquashed if squash else StateDependentGaussian
            return kind(space, latent_size, sample_freq)
        return SquashedGaussian(space) if squash else DiagonalGaussian(space)
    for argument, given in (("squash_output", squash), ("use_sde", latent_size is not None)):
        if given:
            raise SpaceError(f"{argument}=True needs a Box of floats as action space, got {space}")
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        return Choices(space)
    if isinstance(space, spaces.MultiBinary):
        return Bernoulli(space)
    raise SpaceError(
        f"actions of {space} are not supported; supported are Box of floats, Discrete, "
        f"MultiDiscrete and MultiBinary. gymnasium.wrappers.TransformAction can map one of these "
        f"to it"
    )
