"""From a rollout to a better network."""

from __future__ import annotations

import copy
import math
from typing import Any, cast

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from batchppo.actions import ActionDistribution
from batchppo.advantages import explained_variance, generalized_advantages
from batchppo.architecture import Architecture
from batchppo.config import PPOConfig
from batchppo.device import resolve_device
from batchppo.distributions import tensor_distribution
from batchppo.finiteness import raise_not_finite, require_finite_targets
from batchppo.histograms import UpdateHistograms
from batchppo.inputs import Inputs, map_inputs
from batchppo.layout import Evaluation, Layout, RowLayout, blank_rollout
from batchppo.losses import adapted_penalty
from batchppo.minibatches import Minibatches, shuffled_minibatches
from batchppo.normalization import RewardNormalizer
from batchppo.observations import ObservationEncoder
from batchppo.recurrent_networks import RecurrentActorCritic, make_network
from batchppo.rollout import Rollout
from batchppo.schedules import Schedule
from batchppo.sequence_layout import SequenceLayout
from batchppo.update import Batch, Coefficients, Updater, UpdateResult, Warmup

Figures = dict[str, Any]

JIT_COMPILE = True
"""Whether XLA compiles the update of dense and recurrent networks, whose time it cuts by a third
to a half. Convolutions are left to a plain graph: on the CPU, XLA takes 1.7 times as long for them.
So are users' own layers, which may be convolutions or something that XLA cannot compile.
"""


class Learner:
    """The network, its optimizer and what turns rewards into targets.

    Args:
        encoder: what the inputs look like.
        distribution: the actions' distribution.
        config: hyperparameters.
        architecture: the networks' shape.
        seed: of the initial weights and of the minibatches' order.
        device: where to compute, see `resolve_device`.

    Attributes:
        config: the hyperparameters; may be replaced between updates.
        device: where TensorFlow computes.
        network: what is trained.
        updater: how it is trained.
        reward_normalizer: scales rewards for the update; None for raw rewards.
        rng: the source of the minibatches' order.
        n_updates: gradient steps made so far.
        kl_penalty: the present weight of the divergence penalty.
    """

    def __init__(
        self,
        encoder: ObservationEncoder,
        distribution: ActionDistribution,
        config: PPOConfig,
        architecture: Architecture,
        seed: int,
        device: str,
    ) -> None:
        self.config = config
        in_tensorflow = architecture.acts_in_tensorflow(encoder)
        self.device = resolve_device(device, prefer_gpu=in_tensorflow)
        with tf.device(self.device):
            self.network = make_network(encoder, distribution, architecture, seed)
        learning = tensor_distribution(distribution)
        jit_compile = JIT_COMPILE and not in_tensorflow
        self.updater = Updater(
            self.network,
            learning,
            config,
            adam_epsilon=architecture.adam_epsilon,
            jit_compile=jit_compile,
            device=self.device,
        )
        self.reward_normalizer = (
            RewardNormalizer(config.gamma, config.clip_reward) if config.normalize_rewards else None
        )
        self.rng = np.random.default_rng([seed, 1])
        self.n_updates = 0
        self.kl_penalty = config.kl_init_penalty
        self._distribution = distribution
        self._histograms = (
            UpdateHistograms(self.network, self.updater, distribution, self.device)
            if config.log_histograms
            else None
        )
        self._warmup: Warmup | None = None
        self._layout: Layout = (
            SequenceLayout(self.network, learning, config.sequence_length)
            if isinstance(self.network, RecurrentActorCritic)
            else RowLayout(self.network, learning, jit_compile)
        )

    def warm_up(self, n_steps: int, like: Inputs) -> None:
        """Begins to compile the update in the background.

        Args:
            n_steps: steps per environment of a rollout.
            like: one step's normalized inputs, shapes [N, ...].
        """
        if self._warmup is not None or self.updater.traces:
            return
        self._warmup = Warmup(lambda: self._compile(n_steps, like))

    def wait(self) -> None:
        """Returns when the update is compiled; can be interrupted at any time."""
        if self._warmup is not None:
            self._warmup.wait()
            self._warmup = None

    def learn(self, rollout: Rollout, progress_remaining: float) -> Figures:
        """Makes one update from a rollout and returns its figures by their logger keys.

        Figures are numbers and, with `log_histograms`, arrays.

        Args:
            rollout: at least one row of which is valid.
            progress_remaining: from 1 at the start of training to 0 at its end.

        Raises:
            NonFiniteError: a target, the loss or a gradient is not finite; everything stays as it
                was before this update.
            ValueError: a schedule returned NaN, infinity or a negative number.
        """
        self.wait()
        rewards = copy.deepcopy(self.reward_normalizer)
        try:
            return self._learn(rollout, progress_remaining)
        except BaseException:
            self.reward_normalizer = rewards
            raise

    def _learn(self, rollout: Rollout, progress_remaining: float) -> Figures:
        with tf.device(self.device):
            evaluation = self._layout.evaluate(rollout)
        with np.errstate(over="ignore", invalid="ignore"):  # reported below, with a name
            advantages = self._advantages(rollout, evaluation)
        returns = advantages + evaluation.values
        require_finite_targets(
            {
                "log_prob": evaluation.log_prob,
                "values": evaluation.values,
                "advantages": advantages,
                "returns": returns,
            },
            rollout,
            self.network.weights,
        )
        batch = self._layout.arrange(_columns(rollout, evaluation, advantages, returns))
        minibatches = self._minibatches(self._layout.units(rollout.valid), batch, self.rng)
        coefficients = self._coefficients(progress_remaining)
        result = self.updater.update(batch, minibatches, coefficients)
        if not result.finite:
            raise_not_finite(
                result,
                self.updater.spoilt_gradient(batch, minibatches, coefficients, result.steps),
            )
        self.n_updates += result.steps
        figures: Figures = {}
        if self.config.objective != "clip":
            figures["train/kl"] = self.updater.mean_kl(batch)
            self.kl_penalty = adapted_penalty(
                self.kl_penalty, figures["train/kl"], self.config.kl_target
            )
        if self._histograms is not None:
            figures |= self._histograms.of(batch, minibatches, coefficients)
        valid = rollout.valid
        return {
            **figures,
            **_figures(result, coefficients, self.config),
            **self._own_figures(),
            "train/n_updates": self.n_updates,
            "train/explained_variance": explained_variance(
                evaluation.values[valid], returns[valid]
            ),
        }

    def _compile(self, n_steps: int, like: Inputs) -> None:
        """Goes the way of `learn` with a rollout of zeros, up to the first gradient step."""
        rollout = blank_rollout(n_steps, like, self._distribution, self._layout.state_size)
        with tf.device(self.device):
            evaluation = self._layout.evaluate(rollout)
        nothing = np.zeros_like(evaluation.values)
        batch = self._layout.arrange(_columns(rollout, evaluation, nothing, nothing))
        # Another generator: the background must not take numbers from the minibatches' one.
        rng = np.random.default_rng(0)
        self.updater.compile(batch, self._minibatches(np.arange(len(batch.weights)), batch, rng))
        self._layout.forget()

    def _advantages(self, rollout: Rollout, evaluation: Evaluation) -> NDArray[np.float32]:
        advantages = generalized_advantages(
            self._scaled_rewards(rollout),
            evaluation.values,
            evaluation.next_values,
            rollout.terminated,
            rollout.truncated,
            rollout.valid,
            self.config.gamma,
            self.config.gae_lambda,
        )
        return advantages.astype(np.float32)

    def _own_figures(self) -> dict[str, float]:
        figures = {}
        if self.config.objective != "clip":
            figures["train/kl_penalty"] = self.kl_penalty
        log_std = self.network.log_std()
        if log_std is not None:
            figures["train/std"] = float(np.exp(log_std.numpy()).mean())
        return figures

    def _scaled_rewards(self, rollout: Rollout) -> NDArray[np.float64]:
        if self.reward_normalizer is None:
            return rollout.rewards
        done = rollout.terminated | rollout.truncated
        self.reward_normalizer.update(rollout.rewards, done, rollout.valid)
        return self.reward_normalizer.normalize(rollout.rewards)

    def _minibatches(
        self, units: NDArray[np.integer], batch: Batch, rng: np.random.Generator
    ) -> Minibatches:
        """Deals units so that a minibatch has at most `batch_size` rows, but at least one unit."""
        size = max(self.config.batch_size // self._layout.unit_rows, 1)
        return shuffled_minibatches(units, len(batch.weights), size, self.config.n_epochs, rng)

    def _coefficients(self, progress_remaining: float) -> Coefficients:
        def at(name: str) -> float:
            schedule = cast("Schedule | None", getattr(self.config, name))
            if schedule is None:
                return math.inf
            value = schedule(progress_remaining)
            if not 0.0 <= value < math.inf:
                raise ValueError(
                    f"the schedule of {name} returned {value} for a remaining progress of "
                    f"{progress_remaining:.3g}; expected a finite number of at least 0"
                )
            return value

        return Coefficients(
            **{name: at(name) for name in Coefficients._fields if name != "kl_penalty"},
            kl_penalty=self.kl_penalty,
        )


def _columns(
    rollout: Rollout,
    evaluation: Evaluation,
    advantages: NDArray[np.float32],
    returns: NDArray[np.float32],
) -> Batch:
    """Returns all that an update reads of a rollout, columns of shape [T, N, ...]."""
    return Batch(
        inputs=map_inputs(lambda a: a[:-1], rollout.inputs),
        actions=rollout.actions,
        old_parameters=evaluation.parameters,
        old_log_prob=evaluation.log_prob,
        old_values=evaluation.values,
        advantages=advantages,
        returns=returns,
        weights=rollout.valid.astype(np.float32),
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
