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
from batchppo.compilation import compiled
from batchppo.config import PPOConfig
from batchppo.distributions import TensorDistribution
from batchppo.errors import ModelFileError
from batchppo.inputs import Inputs
from batchppo.minibatches import Minibatches
from batchppo.networks import ActorCritic

TARGET_KL_FACTOR = 1.5
"""An update stops where the divergence exceeds the target by this factor (OpenAI Spinning Up)."""


class Batch(NamedTuple):
    """A rollout's rows as an update reads them.

    Its units are what minibatches are dealt from: single rows, columns of shape [B, ...], or for
    policies with memory sequences of L rows, columns of shape [B, L, ...].

    Attributes:
        inputs: normalized observations by name, shapes [B, ...].
        actions: as stored, shape [B, ...].
        old_parameters: of the distributions that acted, shape [B, P].
        old_log_prob: under the policy that acted, shape [B].
        old_values: before the update, shape [B].
        advantages: shape [B].
        returns: value targets, shape [B].
        weights: 1 where a row counts and 0 where it is padding, shape [B].
    """

    inputs: Any
    actions: Any
    old_parameters: Any
    old_log_prob: Any
    old_values: Any
    advantages: Any
    returns: Any
    weights: Any


class Coefficients(NamedTuple):
    """The scheduled numbers of one update, each of shape []; unused bounds are infinite."""

    learning_rate: Any
    clip_range: Any
    clip_range_vf: Any
    ent_coef: Any
    vf_coef: Any
    kl_penalty: Any


class Metrics(NamedTuple):
    """Sums over the minibatches of one update, each of shape [], float32."""

    loss: Any
    policy_loss: Any
    value_loss: Any
    entropy: Any
    kl: Any
    approx_kl: Any
    clip_fraction: Any


class UpdateResult(NamedTuple):
    """What one update did.

    Attributes:
        means: the mean of each metric over the minibatches seen.
        steps: how many gradient steps were made.
        stopped_by_kl: whether the divergence ended the update early.
        finite: False if a loss or gradient was not finite; then the whole update was undone.
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
        device: where to compute.

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
        device: str = "/CPU:0",
    ) -> None:
        self._network = network
        self._distribution = distribution
        self._config = config
        self._device = device
        self.optimizer = keras.optimizers.Adam(0.0, epsilon=adam_epsilon)
        self.optimizer.build(network.trainable_variables)
        self._update = compiled(self._all_minibatches, jit_compile)
        self._kl = compiled(self._mean_kl)

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

    def compile(self, batch: Batch, minibatches: Minibatches) -> None:
        """Compiles the update for batches and minibatches of these shapes; changes nothing."""
        nothing = Coefficients(*[0.0] * len(Coefficients._fields))
        self.update(batch, minibatches._replace(total=0), nothing)

    def mean_kl(self, batch: Batch) -> float:
        """Returns the mean KL(old || present policy) over the rows that count."""
        with tf.device(self._device):
            return float(self._kl(batch_tensors(batch)))

    def update(
        self, batch: Batch, minibatches: Minibatches, coefficients: Coefficients
    ) -> UpdateResult:
        """Makes the gradient steps of all minibatches and returns what they gave."""
        with tf.device(self._device):
            sums, seen, steps, finite = self._update(
                batch_tensors(batch),
                tf.constant(minibatches.rows),
                tf.constant(minibatches.weights),
                tf.constant(minibatches.total, tf.int32),
                coefficient_tensors(coefficients),
            )
        seen, steps = int(seen), int(steps)
        means = Metrics(*(float(total) / max(seen, 1) for total in sums))
        return UpdateResult(means, steps, bool(finite) and steps < seen, bool(finite))

    def spoilt_gradient(
        self, batch: Batch, minibatches: Minibatches, coefficients: Coefficients, steps: int
    ) -> str | None:
        """Returns the first weight whose gradient, behind `steps` steps, is not finite.

        To be asked when an update was undone, with what it was given: its steps are made again, and
        undone again. None if all gradients are finite there.
        """
        variables = self._changed()
        before = [tf.convert_to_tensor(variable) for variable in variables]
        self.update(batch, minibatches._replace(total=steps), coefficients)
        units = tf.nest.map_structure(lambda c: tf.constant(c[minibatches.rows[steps]]), batch)
        with tf.device(self._device):
            gradients, _ = self.gradients(
                units, tf.constant(minibatches.weights[steps]), coefficient_tensors(coefficients)
            )
        _assign(variables, before)
        for name, gradient in zip(self._network.variables, gradients, strict=True):
            if not np.isfinite(gradient).all():
                return name
        return None

    def _changed(self) -> list[Any]:
        """Returns all variables that an update changes."""
        return _values([*self._network.trainable_variables, *self.optimizer.variables])

    def _mean_kl(self, batch: Batch) -> tf.Tensor:
        parameters, _ = self._network.forward(batch.inputs)
        rows = self._rows(batch, tf.ones(tf.shape(batch.weights)[0]))
        divergence = self._distribution.kl_divergence(rows.old_parameters, parameters)
        return losses.weighted_mean(divergence, rows.weights)

    def _rows(self, units: Batch, weights: tf.Tensor) -> Batch:
        """Returns units, weighted each, as rows; the inputs stay as the network reads them."""
        if units.weights.shape.rank == 1:
            return units._replace(weights=units.weights * weights)
        columns = units._replace(weights=units.weights * weights[:, None])[1:]
        flat = (tf.reshape(c, tf.concat([[-1], tf.shape(c)[2:]], axis=0)) for c in columns)
        return Batch(units.inputs, *flat)

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
        variables = self._changed()
        before = [tf.identity(variable) for variable in variables]

        def proceed(i: tf.Tensor, sums: Metrics, steps: tf.Tensor, finite: tf.Tensor) -> tf.Tensor:
            del sums
            # A minibatch without a step (too far from the old policy, not finite) is the last one.
            return (i < count) & (steps == i) & finite

        def body(i: tf.Tensor, sums: Metrics, steps: tf.Tensor, finite: tf.Tensor) -> Any:
            del finite
            minibatch = tf.nest.map_structure(lambda column: tf.gather(column, rows[i]), batch)
            gradients, metrics = self.gradients(minibatch, weights[i], coefficients)
            finite = tf.math.is_finite(tf.linalg.global_norm(gradients) + metrics.loss)
            go = finite & self._close_enough(metrics.approx_kl)
            tf.cond(go, lambda: self.apply(gradients), lambda: None)
            sums = Metrics(*(total + value for total, value in zip(sums, metrics, strict=True)))
            return i + 1, sums, steps + tf.cast(go, tf.int32), finite

        zero = tf.constant(0, tf.int32)
        start = (zero, Metrics(*[tf.constant(0.0)] * len(Metrics._fields)), zero, tf.constant(True))
        seen, sums, steps, finite = tf.while_loop(proceed, body, start)
        tf.cond(finite, lambda: None, lambda: _assign(variables, before))
        return sums, seen, steps, finite

    def gradients(
        self, minibatch: Batch, weights: tf.Tensor, coefficients: Coefficients
    ) -> tuple[list[tf.Tensor], Metrics]:
        """Returns one minibatch's gradients, one per variable, and its metrics.

        Kept apart from `apply`, so that gradients can be combined over several machines between.
        """
        with tf.GradientTape() as tape:
            metrics = self._loss(minibatch, weights, coefficients)
        gradients = tape.gradient(
            metrics.loss,
            _values(self._network.trainable_variables),
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        return [tf.convert_to_tensor(gradient) for gradient in gradients], metrics

    def apply(self, gradients: list[tf.Tensor]) -> None:
        """Makes one step of Adam, with the gradients' global norm bounded."""
        if self._config.max_grad_norm is not None:
            gradients, _ = tf.clip_by_global_norm(gradients, self._config.max_grad_norm)
        self.optimizer.apply(gradients)

    def _loss(self, units: Batch, weights: tf.Tensor, coefficients: Coefficients) -> Metrics:
        rows, weights = self.rows(units, weights, coefficients)
        means = {name: losses.weighted_mean(values, weights) for name, values in rows.items()}
        loss = (
            means["policy_loss"]
            + self._kl_loss(means["kl"], coefficients.kl_penalty)
            + coefficients.vf_coef * means["value_loss"]
            - coefficients.ent_coef * means["entropy"]
        )
        return Metrics(loss=loss, **means)

    def rows(
        self, units: Batch, weights: tf.Tensor, coefficients: Coefficients
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        """Returns what each row of weighted units gives, by metric, and the rows' weights."""
        minibatch = self._rows(units, weights)
        weights = minibatch.weights
        parameters, values = self._network.forward(minibatch.inputs)
        log_prob = self._distribution.log_prob(parameters, minibatch.actions)
        log_ratio = losses.log_ratio(log_prob, minibatch.old_log_prob)
        ratio = tf.exp(log_ratio)
        advantages = minibatch.advantages
        if self._config.normalize_advantage:
            advantages = losses.normalized_advantages(advantages, weights)
        value_loss = losses.value_loss(
            values,
            minibatch.old_values,
            minibatch.returns,
            coefficients.clip_range_vf if self._config.clip_range_vf is not None else None,
        )
        return {
            "policy_loss": self._surrogate(ratio, advantages, coefficients.clip_range),
            "value_loss": value_loss,
            "entropy": self._distribution.entropy(parameters),
            "kl": self._exact_kl(minibatch.old_parameters, parameters),
            "approx_kl": losses.approximate_kl(log_ratio),
            "clip_fraction": tf.cast(tf.abs(ratio - 1.0) > coefficients.clip_range, tf.float32),
        }, weights

    def _surrogate(
        self, ratio: tf.Tensor, advantages: tf.Tensor, clip_range: tf.Tensor
    ) -> tf.Tensor:
        if self._config.objective == "clip":
            return losses.clipped_surrogate(ratio, advantages, clip_range)
        return -ratio * advantages

    def _exact_kl(self, old: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
        if self._config.objective == "clip":
            return tf.zeros(tf.shape(new)[0])
        return self._distribution.kl_divergence(old, new)

    def _kl_loss(self, kl: tf.Tensor, penalty: tf.Tensor) -> tf.Tensor:
        config = self._config
        if config.objective == "clip":
            return 0.0
        cutoff = config.kl_cutoff_factor * config.kl_target
        return losses.kl_penalty_loss(kl, penalty, cutoff, config.kl_cutoff_coef)

    def _close_enough(self, approx_kl: tf.Tensor) -> tf.Tensor:
        if self._config.target_kl is None:
            return tf.constant(True)
        return approx_kl <= TARGET_KL_FACTOR * self._config.target_kl


class Warmup:
    """Compiles in a thread of its own, beside the first rollout.

    Compiling takes seconds in which a signal would not be handled; waiting for this thread can be
    interrupted at any time.

    Args:
        work: what compiles.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._error: BaseException | None = None
        # No daemon: an interpreter that ends while TensorFlow compiles would abort, so it waits.
        self._thread = threading.Thread(target=self._run, args=(work,), name="compile-update")
        self._thread.start()

    def wait(self) -> None:
        """Returns when all is compiled; raises what compiling raised."""
        while self._thread.is_alive():
            self._thread.join(timeout=0.1)
        if self._error is not None:
            raise self._error

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - raised again in the thread that waits
            self._error = error


def tensors(inputs: Inputs) -> dict[str, tf.Tensor]:
    """Returns inputs as tensors."""
    return {name: tf.constant(array) for name, array in inputs.items()}


def _values(variables: list[keras.Variable]) -> list[Any]:
    return [variable.value for variable in variables]


def _assign(variables: list[Any], values: list[tf.Tensor]) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def coefficient_tensors(coefficients: Coefficients) -> Coefficients:
    """Returns coefficients as tensors, so that another value is not compiled anew."""
    return Coefficients(*(tf.constant(value, tf.float32) for value in coefficients))


def batch_tensors(batch: Batch) -> Batch:
    """Returns a batch of arrays as tensors."""
    return Batch(tensors(batch.inputs), *map(tf.constant, batch[1:]))
