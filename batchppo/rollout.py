"""T steps of N environments under one policy."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from batchppo.acting import rollout_network
from batchppo.all_finite import all_finite
from batchppo.environments import autoreset_mode
from batchppo.episodes import EpisodeStatistics
from batchppo.errors import NonFiniteError, SpaceError
from batchppo.inputs import (
    ACTION_MASK,
    EPISODE_START,
    VECTOR,
    Inputs,
    concatenate,
    count_rows,
    map_inputs,
)
from batchppo.masks import mask_size, require_choices
from batchppo.policy import Policy, PolicyNetwork, State
from batchppo.transitions import Stepper, Transitions

FloatArray = NDArray[np.floating]
BoolArray = NDArray[np.bool_]

OnStep = Callable[[int, dict[str, Any]], bool]


class Rollout(NamedTuple):
    """A rollout's rows, time-major. Rows behind an early end are not valid.

    Attributes:
        inputs: normalized observations; row T is what the next rollout begins with, arrays of
            shape [T + 1, N, ...].
        actions: as stored for learning, shape [T, N, ...].
        rewards: raw rewards, shape [T, N], float64.
        terminated: shape [T, N].
        truncated: shape [T, N]; False where terminated.
        valid: which rows are transitions, shape [T, N].
        final_inputs: normalized final observations of the truncated rows, in the order of
            `np.argwhere(truncated & valid)`; None where there are none.
        steps: how many of the T steps were made.
        actor_state: what the policy remembered at the start, shape [N, state]; None if it
            remembers nothing.
        seconds: time spent in the environment and in acting, by name.
    """

    inputs: Inputs
    actions: NDArray[Any]
    rewards: NDArray[np.float64]
    terminated: BoolArray
    truncated: BoolArray
    valid: BoolArray
    final_inputs: Inputs | None
    steps: int
    actor_state: State
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
        valid_share: which share of the last rollout's rows were transitions; None where all are.
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
        self._has_resets = autoreset_mode(env) is AutoresetMode.NEXT_STEP
        self.valid_share = 1.0 if self._has_resets else None
        self._policy = policy
        self._rng = rng
        self._stepper = Stepper(env)
        self._inputs: Inputs = {}
        self._masked_by_infos = False
        self._state: State = None

    def start(self, seed: int | None) -> None:
        """Resets all environments; environment i gets `seed + i`."""
        observations, infos = self._stepper.reset(seed=seed)
        self._masked_by_infos = (
            ACTION_MASK in infos and mask_size(self._policy.action_space) is not None
        )
        self._state = None
        starts = np.ones(self.env.num_envs, np.bool_)
        self._inputs = self._encode(observations, infos, starts, 0)
        self.episodes.begin(self.env.num_envs)
        self.started = True

    @property
    def inputs(self) -> Inputs:
        """What the next step acts on, normalized, arrays of shape [N, ...]."""
        return self._policy.normalize(self._inputs)

    def collect(
        self, timesteps: int, steps: int, goal: int, on_step: OnStep | None = None
    ) -> Rollout | None:
        """Returns the next rollout, or None if `on_step` ended it.

        The observations' statistics are merged behind the last step and so are frozen within the
        rollout; only the very first rollout, which has none yet, follows them step by step.

        Args:
            timesteps: environment steps made so far, for messages and `on_step`.
            steps: how many rows to fill at the most, not more than `n_steps`.
            goal: environment steps at which the rollout ends before that.
            on_step: called after each step with the timesteps so far and what happened; False
                ends the rollout, which is then lost.

        Raises:
            NonFiniteError: an environment returned NaN or infinity.
        """
        size = self._policy.network.state_size
        if size and self._state is None:
            self._state = np.zeros((self.env.num_envs, size), np.float32)
        draft = _Draft(self._policy, self.n_steps, self._inputs, self._state)
        # Should a step raise, the environments' state is unknown: the next rollout resets them.
        self.started = False
        with rollout_network(self._policy.network) as network:
            made = self._play(draft, network, timesteps, steps, goal, on_step)
        self.started = True
        return None if made is None else draft.finish(made, self._inputs)

    def _play(
        self,
        draft: _Draft,
        network: PolicyNetwork,
        timesteps: int,
        steps: int,
        goal: int,
        on_step: OnStep | None,
    ) -> int | None:
        """Writes steps into a draft and returns how many; None if `on_step` ended the rollout."""
        before = timesteps
        noise = self._policy.distribution.draw_noise(self._rng, (steps, self.env.num_envs))
        for t in range(steps):
            began = time.perf_counter()
            actions, self._state = draft.act(
                t, self._inputs, noise[t], self._state, ~self._stepper.pending, network
            )
            acted = time.perf_counter()
            step = self._stepper.step(self._policy.distribution.to_environment(actions))
            stepped = time.perf_counter()
            timesteps += int(np.count_nonzero(step.valid))
            self._inputs = self._encode(step.observations, step.infos, step.starts, timesteps)
            draft.keep(t, step, timesteps)
            self.episodes.update(step)
            draft.seconds["acting"] += acted - began
            draft.seconds["environment"] += stepped - acted
            if on_step is not None and not on_step(timesteps, _locals(step, actions)):
                return None
            if timesteps >= goal:
                break
        share = (timesteps - before) / ((t + 1) * self.env.num_envs)
        self.valid_share = share if self._has_resets or share < 1.0 else None
        return t + 1

    def _encode(
        self, observations: Any, infos: dict[str, Any], starts: BoolArray, timesteps: int
    ) -> Inputs:
        # May be a view into the environment's memory: it is read before the next step.
        inputs = self._policy.encoder.encode(observations)
        if VECTOR in inputs:
            _require_finite(inputs[VECTOR], "observation", timesteps)
        if self._policy.network.state_size:
            inputs[EPISODE_START] = starts
        if self._masked_by_infos:
            inputs[ACTION_MASK] = self._masks(infos)
        if ACTION_MASK in inputs:
            require_choices(inputs[ACTION_MASK], self._policy.distribution)
        return inputs

    def _masks(self, infos: dict[str, Any]) -> BoolArray:
        """Returns the masks of an `infos`; environments that give none allow everything."""
        size = self._policy.distribution.parameter_size
        came = infos.get(ACTION_MASK)
        if came is None:
            raise SpaceError(
                f"the environments gave an info['{ACTION_MASK}'] at their reset, but none in a "
                f"later step; give one in every step and reset"
            )
        masks = np.ones((self.env.num_envs, size), np.bool_)
        for i in np.flatnonzero(infos[f"_{ACTION_MASK}"]):
            masks[i] = np.asarray(came[i], np.bool_).ravel()
        return masks


class _Draft:
    """A rollout being written."""

    def __init__(self, policy: Policy, n_steps: int, like: Inputs, state: State) -> None:
        distribution = policy.distribution
        num_envs = count_rows(like)
        self._policy = policy
        self._first_state = state
        self._learns = policy.normalizer is not None and policy.normalizer.moments.count == 0
        self._raw = np.empty(0)
        if policy.normalizer is not None:
            self._raw = np.empty((n_steps, *like[VECTOR].shape), like[VECTOR].dtype)
        self._inputs = map_inputs(
            lambda array: np.zeros((n_steps + 1, *array.shape), array.dtype), policy.normalize(like)
        )
        shape = (n_steps, num_envs, *distribution.action_shape)
        self._actions = np.zeros(shape, distribution.action_dtype)
        self._rewards = np.zeros((n_steps, num_envs), np.float64)
        self._terminated = np.zeros((n_steps, num_envs), np.bool_)
        self._truncated = np.zeros((n_steps, num_envs), np.bool_)
        self._valid = np.zeros((n_steps, num_envs), np.bool_)
        self._final: list[Inputs] = []
        self.seconds = {"environment": 0.0, "acting": 0.0}

    def act(
        self,
        t: int,
        encoded: Inputs,
        noise: FloatArray,
        state: State,
        valid: BoolArray,
        network: PolicyNetwork,
    ) -> tuple[NDArray[Any], State]:
        """Keeps the observations of step t and returns the actions for them, and the next state."""
        if self._policy.normalizer is not None:
            self._raw[t] = encoded[VECTOR]
            if self._learns:
                self._policy.normalizer.update(encoded[VECTOR][valid])
        inputs = self._policy.normalize(encoded)
        for name, array in inputs.items():
            self._inputs[name][t] = array
        actions, state = self._policy.sample(inputs, noise, state, network)
        self._actions[t] = actions
        return actions, state

    def keep(self, t: int, step: Transitions, timesteps: int) -> None:
        """Keeps what step t led to."""
        _require_finite(step.rewards, "reward", timesteps)
        self._rewards[t] = step.rewards
        self._terminated[t] = step.terminated
        self._truncated[t] = step.truncated
        self._valid[t] = step.valid
        if step.final_observations is None:
            return
        encoded = self._policy.encoder.encode(step.final_observations)
        if VECTOR in encoded:
            envs = np.flatnonzero(step.truncated)
            _require_finite(encoded[VECTOR], "final observation", timesteps, envs)
        counted = step.valid[step.truncated]
        self._final.append(map_inputs(lambda a: a[counted], self._policy.normalize(encoded)))

    def finish(self, steps: int, encoded: Inputs) -> Rollout:
        """Returns the rollout of the first `steps` steps, which `encoded` follows."""
        for name, array in self._policy.normalize(encoded).items():
            self._inputs[name][steps] = array
        normalizer = self._policy.normalizer
        if normalizer is not None and not self._learns:
            normalizer.update(self._raw[:steps][self._valid[:steps]])
        return Rollout(
            inputs=self._inputs,
            actions=self._actions,
            rewards=self._rewards,
            terminated=self._terminated,
            truncated=self._truncated,
            valid=self._valid,
            final_inputs=concatenate(self._final) if self._final else None,
            steps=steps,
            actor_state=self._first_state,
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
    if all_finite(values):
        return
    rows = values.reshape(len(values), -1)
    row = int(np.argmax(~np.isfinite(rows).all(axis=1)))
    env = row if envs is None else int(envs[row])
    raise NonFiniteError(
        f"environment {env} returned {rows[row][~np.isfinite(rows[row])][0]} in its {what} at "
        f"timestep {timesteps:,}; expected finite numbers. Look for a division by zero or a "
        f"diverging simulation there, or end the episode before it diverges"
    )
