"""From a rollout to a better network."""

from __future__ import annotations

import math
from typing import cast

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from batchppo.actions import ActionDistribution
from batchppo.advantages import explained_variance, generalized_advantages
from batchppo.architecture import Architecture
from batchppo.config import PPOConfig
from batchppo.device import resolve_device
from batchppo.distributions import tensor_distribution
from batchppo.errors import NonFiniteError
from batchppo.minibatches import Minibatches, shuffled_minibatches
from batchppo.networks import ActorCritic
from batchppo.normalization import RewardNormalizer
from batchppo.rollout import Rollout
from batchppo.schedules import Schedule
from batchppo.update import Batch, Coefficients, Updater, UpdateResult, Warmup

JIT_COMPILE = True
"""Whether XLA compiles the update: for dense networks it halves the time of a plain graph."""


class Learner:
    """The network, its optimizer and what turns rewards into targets.

    Args:
        input_size: how many numbers a normalized observation has.
        distribution: the actions' distribution.
        config: hyperparameters.
        architecture: the networks' shape.
        seed: of the initial weights and of the minibatches' order.
        device: where to compute, see `resolve_device`.

    Attributes:
        config: the hyperparameters; may be replaced between updates.
        network: what is trained.
        updater: how it is trained.
        reward_normalizer: scales rewards for the update; None for raw rewards.
        rng: the source of the minibatches' order.
        n_updates: gradient steps made so far.
    """

    def __init__(
        self,
        input_size: int,
        distribution: ActionDistribution,
        config: PPOConfig,
        architecture: Architecture,
        seed: int,
        device: str,
    ) -> None:
        self.config = config
        self._device = resolve_device(device)
        with tf.device(self._device):
            self.network = ActorCritic(input_size, distribution, architecture, seed)
        self.updater = Updater(
            self.network,
            tensor_distribution(distribution),
            config,
            adam_epsilon=architecture.adam_epsilon,
            jit_compile=JIT_COMPILE,
        )
        self.reward_normalizer = (
            RewardNormalizer(config.gamma, config.clip_reward) if config.normalize_rewards else None
        )
        self.rng = np.random.default_rng([seed, 1])
        self.n_updates = 0
        self._distribution = distribution
        self._input_size = input_size
        self._warmup: Warmup | None = None

    def warm_up(self, n_steps: int, num_envs: int) -> None:
        """Begins to compile the update for rollouts of this shape, in the background."""
        if self._warmup is not None or self.updater.traces:
            return
        rows = n_steps * num_envs
        column = np.zeros(rows, np.float32)
        actions = np.zeros(
            (rows, *self._distribution.action_shape), self._distribution.action_dtype
        )
        inputs = np.zeros((rows, self._input_size), np.float32)
        batch = Batch(inputs, actions, column, column, column, column)
        self._warmup = Warmup(self.updater, batch, self._minibatches(np.arange(rows), rows))

    def wait(self) -> None:
        """Returns when the update is compiled; can be interrupted at any time."""
        if self._warmup is not None:
            self._warmup.wait()
            self._warmup = None

    def learn(self, rollout: Rollout, progress_remaining: float) -> dict[str, float]:
        """Makes one update from a rollout and returns its figures by their logger keys.

        Args:
            rollout: at least one row of which is valid.
            progress_remaining: from 1 at the start of training to 0 at its end.

        Raises:
            NonFiniteError: the loss or a gradient is not finite; the weights stay as they were
                before the step that would have spoilt them.
        """
        self.wait()
        batch = self._batch(rollout)
        valid_rows = np.flatnonzero(rollout.valid)
        minibatches = self._minibatches(valid_rows, rollout.valid.size)
        coefficients = self._coefficients(progress_remaining)
        result = self.updater.update(batch, minibatches, coefficients)
        self.n_updates += result.steps
        _require_finite(result)
        variance = explained_variance(batch.old_values[valid_rows], batch.returns[valid_rows])
        return {
            **_figures(result, coefficients, self.config),
            **self._deviation(),
            "train/n_updates": self.n_updates,
            "train/explained_variance": variance,
        }

    def _batch(self, rollout: Rollout) -> Batch:
        """Returns the rollout's rows with what the old network says of them, and targets."""
        steps, num_envs = rollout.valid.shape
        rows = steps * num_envs
        inputs = rollout.inputs.reshape(rows + num_envs, self._input_size)
        actions = rollout.actions.reshape(rows, *rollout.actions.shape[2:])
        old_log_prob, all_values = self.updater.evaluate(inputs, actions)
        values, following = all_values[:rows], all_values[num_envs:]
        advantages = self._advantages(
            rollout, values.reshape(steps, num_envs), following.reshape(steps, num_envs)
        ).reshape(rows)
        return Batch(inputs[:rows], actions, old_log_prob, values, advantages, advantages + values)

    def _advantages(
        self, rollout: Rollout, values: NDArray[np.float32], following: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Returns the advantages, [T, N], from the values of each row and of the row behind it."""
        final_values = self.updater.values(rollout.final_inputs, chunk=values.shape[1])
        next_values = following.copy()
        next_values[rollout.truncated & rollout.valid] = final_values
        advantages = generalized_advantages(
            self._scaled_rewards(rollout),
            values,
            next_values,
            rollout.terminated,
            rollout.truncated,
            rollout.valid,
            self.config.gamma,
            self.config.gae_lambda,
        )
        # Too large for 32 bits becomes infinite, which the update then reports.
        with np.errstate(over="ignore"):
            return advantages.astype(np.float32)

    def _deviation(self) -> dict[str, float]:
        log_std = self.network.variables.get("log_std")
        return {} if log_std is None else {"train/std": float(np.exp(log_std.numpy()).mean())}

    def _scaled_rewards(self, rollout: Rollout) -> NDArray[np.float64]:
        if self.reward_normalizer is None:
            return rollout.rewards
        done = rollout.terminated | rollout.truncated
        self.reward_normalizer.update(rollout.rewards, done, rollout.valid)
        return self.reward_normalizer.normalize(rollout.rewards)

    def _minibatches(self, valid_rows: NDArray[np.integer], capacity: int) -> Minibatches:
        config = self.config
        return shuffled_minibatches(
            valid_rows, capacity, config.batch_size, config.n_epochs, self.rng
        )

    def _coefficients(self, progress_remaining: float) -> Coefficients:
        def at(name: str) -> float:
            schedule = cast("Schedule | None", getattr(self.config, name))
            return math.inf if schedule is None else schedule(progress_remaining)

        return Coefficients(*(at(name) for name in Coefficients._fields))


def _require_finite(result: UpdateResult) -> None:
    if result.finite:
        return
    bad = [name for name, value in result.means._asdict().items() if not math.isfinite(value)]
    raise NonFiniteError(
        f"{bad[0] if bad else 'the gradient'} became {'NaN or infinite' if bad else 'not finite'} "
        f"in gradient step {result.steps + 1} of this update; that step was not applied. A smaller "
        f"learning_rate, max_grad_norm=0.5 or normalized observations usually help"
    )


def _figures(
    result: UpdateResult, coefficients: Coefficients, config: PPOConfig
) -> dict[str, float]:
    means = result.means
    figures = {
        "train/approx_kl": means.approx_kl,
        "train/clip_fraction": means.clip_fraction,
        "train/clip_range": coefficients.clip_range,
        "train/entropy_loss": -means.entropy,
        "train/learning_rate": coefficients.learning_rate,
        "train/loss": means.loss,
        "train/policy_gradient_loss": means.policy_loss,
        "train/value_loss": means.value_loss,
    }
    if config.clip_range_vf is not None:
        figures["train/clip_range_vf"] = coefficients.clip_range_vf
    if result.stopped_by_kl:
        figures["train/early_stop_step"] = result.steps
    return figures
