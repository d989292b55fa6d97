"""One update: all epochs and minibatches in one compiled function of one shape."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from batchppo import losses
from batchppo.config import PPOConfig
from batchppo.distributions import TensorDistribution
from batchppo.errors import ModelFileError
from batchppo.minibatches import Minibatches
from batchppo.networks import ActorCritic

TARGET_KL_FACTOR = 1.5
"""An update stops where the divergence exceeds the target by this factor (OpenAI Spinning Up)."""


class Batch(NamedTuple):
    """A rollout's rows as an update reads them; B rows, of which some may be padding.

    Attributes:
        inputs: normalized observations, shape [B, size].
        actions: as stored, shape [B, ...].
        old_log_prob: under the policy that acted, shape [B].
        old_values: before the update, shape [B].
        advantages: shape [B].
        returns: value targets, shape [B].
    """

    inputs: Any
    actions: Any
    old_log_prob: Any
    old_values: Any
    advantages: Any
    returns: Any


class Coefficients(NamedTuple):
    """The scheduled numbers of one update, each of shape []; unused bounds are infinite."""

    learning_rate: Any
    clip_range: Any
    clip_range_vf: Any
    ent_coef: Any
    vf_coef: Any


class Metrics(NamedTuple):
    """Sums over the minibatches of one update, each of shape [], float32."""

    loss: Any
    policy_loss: Any
    value_loss: Any
    entropy: Any
    approx_kl: Any
    clip_fraction: Any


class UpdateResult(NamedTuple):
    """What one update did.

    Attributes:
        means: the mean of each metric over the minibatches seen.
        steps: how many gradient steps were made.
        stopped_by_kl: whether the divergence ended the update early.
        finite: False if a loss or gradient was not finite; no such step was applied.
    """

    means: Metrics
    steps: int
    stopped_by_kl: bool
    finite: bool


class Updater:
    """Takes gradient steps on an actor-critic.

    Args:
        network: what is trained.
        distribution: what the network's parameters describe.
        config: hyperparameters.
        adam_epsilon: Adam's epsilon.
        jit_compile: whether XLA compiles the update.

    Attributes:
        optimizer: Keras' Adam, over the network's variables in their order.
    """

    def __init__(
        self,
        network: ActorCritic,
        distribution: TensorDistribution,
        config: PPOConfig,
        adam_epsilon: float,
        jit_compile: bool,
    ) -> None:
        self._network = network
        self._distribution = distribution
        self._config = config
        self.optimizer = keras.optimizers.Adam(0.0, epsilon=adam_epsilon)
        self.optimizer.build(network.trainable_variables)
        self._update = _compiled(self._all_minibatches, jit_compile)
        self._evaluate = _compiled(self._log_prob_and_values)
        self._value = _compiled(network.values)

    @property
    def traces(self) -> int:
        """How many times the update was compiled; more than 1 is a fault."""
        count: int = self._update.experimental_get_tracing_count()
        return count

    def optimizer_state(self) -> dict[str, NDArray[Any]]:
        """Returns the optimizer's variables by position, for a model file."""
        return {str(i): np.array(v.numpy()) for i, v in enumerate(self.optimizer.variables)}

    def restore_optimizer(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Assigns what `optimizer_state` returned.

        Raises:
            ModelFileError: an array is missing or has another shape.
        """
        for i, variable in enumerate(self.optimizer.variables):
            found = state.get(str(i))
            if found is None or found.shape != tuple(variable.shape):
                came = "none" if found is None else f"shape {found.shape}"
                raise ModelFileError(
                    f"optimizer array {i}: expected shape {tuple(variable.shape)}, got {came}"
                )
        for i, variable in enumerate(self.optimizer.variables):
            variable.assign(state[str(i)])

    def evaluate(
        self, inputs: NDArray[np.float32], actions: NDArray[Any]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Returns the actions' log-probabilities, shape [B], and all values, shape [B + N].

        Args:
            inputs: normalized observations, shape [B + N, size]; the last N have no action.
            actions: as stored, shape [B, ...].
        """
        log_prob, values = self._evaluate(tf.constant(inputs), tf.constant(actions))
        return log_prob.numpy(), values.numpy()

    def values(self, inputs: NDArray[np.float32], chunk: int) -> NDArray[np.float32]:
        """Returns V(s), shape [n], for any number n of inputs, `chunk` at a time.

        The last chunk is padded, so that the function is compiled for one shape only.
        """
        count = len(inputs)
        padded = np.zeros((-(-count // chunk) * chunk, inputs.shape[1]), np.float32)
        padded[:count] = inputs
        chunks = (padded[i : i + chunk] for i in range(0, len(padded), chunk))
        values = [self._value(tf.constant(rows)).numpy() for rows in chunks]
        return np.concatenate([np.empty(0, np.float32), *values])[:count]

    def update(
        self, batch: Batch, minibatches: Minibatches, coefficients: Coefficients
    ) -> UpdateResult:
        """Makes the gradient steps of all minibatches and returns what they gave."""
        sums, seen, steps, finite = self._update(
            Batch(*map(tf.constant, batch)),
            tf.constant(minibatches.rows),
            tf.constant(minibatches.weights),
            tf.constant(minibatches.total, tf.int32),
            Coefficients(*(tf.constant(value, tf.float32) for value in coefficients)),
        )
        seen, steps = int(seen), int(steps)
        means = Metrics(*(float(total) / max(seen, 1) for total in sums))
        return UpdateResult(means, steps, bool(finite) and steps < seen, bool(finite))

    def _log_prob_and_values(
        self, inputs: tf.Tensor, actions: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        parameters = self._network.parameters(inputs[: tf.shape(actions)[0]])
        return self._distribution.log_prob(parameters, actions), self._network.values(inputs)

    def _all_minibatches(
        self,
        batch: Batch,
        rows: tf.Tensor,
        weights: tf.Tensor,
        count: tf.Tensor,
        coefficients: Coefficients,
    ) -> tuple[Metrics, tf.Tensor, tf.Tensor, tf.Tensor]:
        """Loops over the minibatches; returns sums, minibatches seen, steps made and finiteness."""
        self.optimizer.learning_rate.assign(coefficients.learning_rate)

        def proceed(i: tf.Tensor, sums: Metrics, steps: tf.Tensor, finite: tf.Tensor) -> tf.Tensor:
            del sums
            # A minibatch without a step (too far from the old policy, not finite) is the last one.
            return (i < count) & (steps == i) & finite

        def body(i: tf.Tensor, sums: Metrics, steps: tf.Tensor, finite: tf.Tensor) -> Any:
            del finite
            minibatch = Batch(*(tf.gather(column, rows[i]) for column in batch))
            gradients, metrics = self.gradients(minibatch, weights[i], coefficients)
            finite = tf.math.is_finite(tf.linalg.global_norm(gradients) + metrics.loss)
            go = finite & self._close_enough(metrics.approx_kl)
            tf.cond(go, lambda: self.apply(gradients), lambda: None)
            sums = Metrics(*(total + value for total, value in zip(sums, metrics, strict=True)))
            return i + 1, sums, steps + tf.cast(go, tf.int32), finite

        zero = tf.constant(0, tf.int32)
        start = (zero, Metrics(*[tf.constant(0.0)] * len(Metrics._fields)), zero, tf.constant(True))
        seen, sums, steps, finite = tf.while_loop(proceed, body, start)
        return sums, seen, steps, finite

    def gradients(
        self, minibatch: Batch, weights: tf.Tensor, coefficients: Coefficients
    ) -> tuple[list[tf.Tensor], Metrics]:
        """Returns one minibatch's gradients, one per variable, and its metrics.

        Kept apart from `apply`, so that gradients can be combined over several machines between.
        """
        with tf.GradientTape() as tape:
            metrics = self._loss(minibatch, weights, coefficients)
        return tape.gradient(metrics.loss, _values(self._network.trainable_variables)), metrics

    def apply(self, gradients: list[tf.Tensor]) -> None:
        """Makes one step of Adam, with the gradients' global norm bounded."""
        if self._config.max_grad_norm is not None:
            gradients, _ = tf.clip_by_global_norm(gradients, self._config.max_grad_norm)
        self.optimizer.apply(gradients)

    def _loss(self, minibatch: Batch, weights: tf.Tensor, coefficients: Coefficients) -> Metrics:
        parameters = self._network.parameters(minibatch.inputs)
        log_prob = self._distribution.log_prob(parameters, minibatch.actions)
        log_ratio = losses.log_ratio(log_prob, minibatch.old_log_prob)
        ratio = tf.exp(log_ratio)
        advantages = minibatch.advantages
        if self._config.normalize_advantage:
            advantages = losses.normalized_advantages(advantages, weights)
        surrogate = losses.clipped_surrogate(ratio, advantages, coefficients.clip_range)
        value_loss = losses.value_loss(
            self._network.values(minibatch.inputs),
            minibatch.old_values,
            minibatch.returns,
            coefficients.clip_range_vf if self._config.clip_range_vf is not None else None,
        )
        clipped = tf.cast(tf.abs(ratio - 1.0) > coefficients.clip_range, tf.float32)
        rows = {
            "policy_loss": surrogate,
            "value_loss": value_loss,
            "entropy": self._distribution.entropy(parameters),
            "approx_kl": losses.approximate_kl(log_ratio),
            "clip_fraction": clipped,
        }
        means = {name: losses.weighted_mean(values, weights) for name, values in rows.items()}
        loss = (
            means["policy_loss"]
            + coefficients.vf_coef * means["value_loss"]
            - coefficients.ent_coef * means["entropy"]
        )
        return Metrics(loss=loss, **means)

    def _close_enough(self, approx_kl: tf.Tensor) -> tf.Tensor:
        if self._config.target_kl is None:
            return tf.constant(True)
        return approx_kl <= TARGET_KL_FACTOR * self._config.target_kl


class Warmup:
    """Compiles an update in a thread of its own, beside the first rollout.

    Compiling takes seconds in which a signal would not be handled; waiting for this thread can be
    interrupted at any time, and the network is as it was, since no minibatch is run.

    Args:
        updater: what to compile.
        batch: rows of the right shapes; their contents do not matter.
        minibatches: likewise; none of them is run.
    """

    def __init__(self, updater: Updater, batch: Batch, minibatches: Minibatches) -> None:
        self._error: BaseException | None = None
        self._thread = threading.Thread(
            target=self._run, args=(updater, batch, minibatches), name="compile-update", daemon=True
        )
        self._thread.start()

    def wait(self) -> None:
        """Returns when the update is compiled; raises what compiling raised."""
        while self._thread.is_alive():
            self._thread.join(timeout=0.1)
        if self._error is not None:
            raise self._error

    def _run(self, updater: Updater, batch: Batch, minibatches: Minibatches) -> None:
        try:
            nothing = Coefficients(*[0.0] * len(Coefficients._fields))
            updater.update(batch, minibatches._replace(total=0), nothing)
        except Exception as error:  # noqa: BLE001 - raised again in the thread that waits
            self._error = error


def _compiled(method: Callable[..., Any], jit_compile: bool = False) -> Any:
    """Returns a TensorFlow function of its own around a method.

    TensorFlow counts the traces of a method over all instances, and would warn of "frequent
    retracing" when a program makes a few agents; a lambda is counted by itself. Loops and
    conditions are TensorFlow's already: without autograph, tracing takes half the time.
    """
    function = lambda *arguments: method(*arguments)  # noqa: E731, PLW0108
    return tf.function(function, jit_compile=jit_compile, autograph=False)


def _values(variables: list[keras.Variable]) -> list[Any]:
    return [variable.value for variable in variables]
