"""T steps of N environments under one policy."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from batchppo.episodes import EpisodeStatistics
from batchppo.errors import NonFiniteError
from batchppo.policy import Policy
from batchppo.transitions import Stepper, Transitions

FloatArray = NDArray[np.floating]
BoolArray = NDArray[np.bool_]

OnStep = Callable[[int, dict[str, Any]], bool]


class Rollout(NamedTuple):
    """A rollout's rows, time-major. Rows behind an early end are not valid.

    Attributes:
        inputs: normalized observations; row T is what the next rollout begins with,
            shape [T + 1, N, size], float32.
        actions: as stored for learning, shape [T, N, ...].
        rewards: raw rewards, shape [T, N], float64.
        terminated: shape [T, N].
        truncated: shape [T, N]; False where terminated.
        valid: which rows are transitions, shape [T, N].
        final_inputs: normalized final observations of the truncated rows, in the order of
            `np.argwhere(truncated & valid)`, shape [n, size], float32.
        seconds: time spent in the environment and in acting, by name.
    """

    inputs: NDArray[np.float32]
    actions: NDArray[Any]
    rewards: NDArray[np.float64]
    terminated: BoolArray
    truncated: BoolArray
    valid: BoolArray
    final_inputs: NDArray[np.float32]
    seconds: dict[str, float]


class RolloutCollector:
    """Plays a policy in a vector environment and keeps what it saw.

    Args:
        env: the vector environment.
        policy: how to act.
        n_steps: T, the steps of a full rollout.
        window: how many episodes the statistics keep.
        rng: the source of the actions' noise.

    Attributes:
        env: the same.
        episodes: statistics of the last episodes.
        started: whether the environments have been reset.
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        policy: Policy,
        n_steps: int,
        window: int,
        rng: np.random.Generator,
    ) -> None:
        self.env = env
        self.episodes = EpisodeStatistics(env.num_envs, window)
        self.started = False
        self.n_steps = n_steps
        self._policy = policy
        self._rng = rng
        self._stepper = Stepper(env)
        self._rows: FloatArray = np.empty(0, np.float32)

    def start(self, seed: int | None) -> None:
        """Resets all environments; environment i gets `seed + i`."""
        observations, _ = self._stepper.reset(seed=seed)
        self._rows = self._encode(observations, 0)
        self.episodes.begin(self.env.num_envs)
        self.started = True

    def collect(self, timesteps: int, steps: int, on_step: OnStep | None = None) -> Rollout | None:
        """Returns the next rollout, or None if `on_step` ended it.

        The observations' statistics are merged behind the last step and so are frozen within the
        rollout; only the very first rollout, which has none yet, follows them step by step.

        Args:
            timesteps: environment steps made so far, for messages and `on_step`.
            steps: how many rows to fill, at most `n_steps`.
            on_step: called after each step with the timesteps so far and what happened; False
                ends the rollout, which is then lost.

        Raises:
            NonFiniteError: an environment returned NaN or infinity.
        """
        draft = _Draft(self._policy, self.n_steps, self.env.num_envs, self._rows.dtype)
        noise = self._policy.distribution.draw_noise(self._rng, (steps, self.env.num_envs))
        # Should a step raise, the environments' state is unknown: the next rollout resets them.
        self.started = False
        for t in range(steps):
            began = time.perf_counter()
            actions = draft.act(t, self._rows, noise[t], ~self._stepper.pending)
            acted = time.perf_counter()
            step = self._stepper.step(self._policy.distribution.to_environment(actions))
            stepped = time.perf_counter()
            timesteps += int(np.count_nonzero(step.valid))
            self._rows = self._encode(step.observations, timesteps)
            draft.keep(t, step, timesteps)
            self.episodes.update(step)
            draft.seconds["acting"] += acted - began
            draft.seconds["environment"] += stepped - acted
            if on_step is not None and not on_step(timesteps, _locals(step, actions)):
                self.started = True
                return None
        self.started = True
        return draft.finish(steps, self._rows)

    def _encode(self, observations: Any, timesteps: int) -> FloatArray:
        # May be a view into the environment's memory: it is read before the next step.
        rows = self._policy.encoder.encode(observations)
        _require_finite(rows, "observation", timesteps)
        return rows


class _Draft:
    """A rollout being written."""

    def __init__(self, policy: Policy, n_steps: int, num_envs: int, dtype: Any) -> None:
        encoder, distribution = policy.encoder, policy.distribution
        self._policy = policy
        self._learns = policy.normalizer is not None and policy.normalizer.moments.count == 0
        self._raw = np.empty((n_steps, num_envs, encoder.size), dtype)
        self._inputs = np.zeros((n_steps + 1, num_envs, encoder.size), np.float32)
        shape = (n_steps, num_envs, *distribution.action_shape)
        self._actions = np.zeros(shape, distribution.action_dtype)
        self._rewards = np.zeros((n_steps, num_envs), np.float64)
        self._terminated = np.zeros((n_steps, num_envs), np.bool_)
        self._truncated = np.zeros((n_steps, num_envs), np.bool_)
        self._valid = np.zeros((n_steps, num_envs), np.bool_)
        self._final: list[NDArray[np.float32]] = []
        self.seconds = {"environment": 0.0, "acting": 0.0}

    def act(self, t: int, rows: FloatArray, noise: FloatArray, valid: BoolArray) -> NDArray[Any]:
        """Keeps the observations of step t and returns the actions for them."""
        self._raw[t] = rows
        if self._learns and self._policy.normalizer is not None:
            self._policy.normalizer.update(rows[valid])
        inputs = self._policy.normalize(rows)
        self._inputs[t] = inputs
        actions = self._policy.sample(inputs, noise)
        self._actions[t] = actions
        return actions

    def keep(self, t: int, step: Transitions, timesteps: int) -> None:
        """Keeps what step t led to."""
        _require_finite(step.rewards, "reward", timesteps)
        self._rewards[t] = step.rewards
        self._terminated[t] = step.terminated
        self._truncated[t] = step.truncated
        self._valid[t] = step.valid
        if step.final_observations is None:
            return
        rows = self._policy.encoder.encode(step.final_observations)
        _require_finite(rows, "final observation", timesteps, np.flatnonzero(step.truncated))
        self._final.append(self._policy.normalize(rows)[step.valid[step.truncated]])

    def finish(self, steps: int, rows: FloatArray) -> Rollout:
        """Returns the rollout of the first `steps` steps, which `rows` follow."""
        self._inputs[steps] = self._policy.normalize(rows)
        normalizer = self._policy.normalizer
        if normalizer is not None and not self._learns:
            normalizer.update(self._raw[:steps][self._valid[:steps]])
        size = self._inputs.shape[-1]
        return Rollout(
            inputs=self._inputs,
            actions=self._actions,
            rewards=self._rewards,
            terminated=self._terminated,
            truncated=self._truncated,
            valid=self._valid,
            final_inputs=np.concatenate([np.empty((0, size), np.float32), *self._final]),
            seconds=self.seconds,
        )


def _locals(step: Transitions, actions: NDArray[Any]) -> dict[str, Any]:
    """Returns what Stable-Baselines3's callbacks find in `self.locals`, as far as it exists."""
    return {
        "actions": actions,
        "rewards": step.rewards,
        "dones": step.terminated | step.truncated,
        "infos": step.infos,
        "new_obs": step.observations,
        "valid": step.valid,
    }


def _require_finite(
    values: FloatArray, what: str, timesteps: int, envs: NDArray[np.intp] | None = None
) -> None:
    """Raises NonFiniteError naming the environment and the step, unless all values are finite."""
    # A sum is cheaper than looking at each value; it also overflows, so look again if it does.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()) or np.isfinite(values).all():
            return
    rows = values.reshape(len(values), -1)
    row = int(np.argmax(~np.isfinite(rows).all(axis=1)))
    env = row if envs is None else int(envs[row])
    raise NonFiniteError(
        f"environment {env} returned {rows[row][~np.isfinite(rows[row])][0]} in its {what} at "
        f"timestep {timesteps:,}; expected finite numbers. Look for a division by zero or a "
        f"diverging simulation there, or end the episode before it diverges"
    )
