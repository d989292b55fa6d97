"""One step of a vector environment as transitions, whatever its autoreset mode.

Gymnasium's three modes tell the same story in three layouts. Here each becomes the same thing: for
every environment the reward and the flags of its step, whether the row is a transition at all, the
final observation where the episode was truncated, and the observation to act on next.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from gymnasium.error import AlreadyPendingCallError
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from batchppo.environments import autoreset_mode
from batchppo.inputs import ACTION_MASK

BoolArray = NDArray[np.bool_]


class Transitions(NamedTuple):
    """What one step of N environments gave.

    Attributes:
        observations: what to act on next, a batch of N.
        rewards: shape [N], float64.
        terminated: shape [N].
        truncated: shape [N]; False where terminated, which weighs more.
        valid: False where the row is no transition (a reset), shape [N].
        starts: where `observations` begin an episode, shape [N].
        final_observations: where episodes were truncated, their last observations, a batch as
            long as `truncated` has True; None if it has none.
        infos: the vector environment's infos.
    """

    observations: Any
    rewards: NDArray[np.float64]
    terminated: BoolArray
    truncated: BoolArray
    valid: BoolArray
    starts: BoolArray
    final_observations: Any
    infos: dict[str, Any]


class Stepper:
    """Steps a vector environment and reads its autoreset mode.

    Args:
        env: the vector environment.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        self._env = env
        self._step = _MODES[autoreset_mode(env)]
        self.pending = np.zeros(env.num_envs, np.bool_)

    def reset(self, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets all environments and returns their observations and infos."""
        self.pending = np.zeros(self._env.num_envs, np.bool_)
        try:
            return self._env.reset(seed=seed)
        except AlreadyPendingCallError as error:  # Ctrl-C came while the environments were at work
            _let_go(self._env.unwrapped, error.name)
            return self._env.reset(seed=seed)

    def step(self, actions: Any) -> Transitions:
        """Returns the transitions that `actions`, a batch of N, lead to."""
        observations, rewards, terminated, truncated, infos = self._env.step(actions)
        terminated = np.asarray(terminated, np.bool_)
        truncated = np.asarray(truncated, np.bool_) & ~terminated
        result = Transitions(
            observations=observations,
            rewards=np.asarray(rewards, np.float64),
            terminated=terminated,
            truncated=truncated,
            valid=~self.pending,
            starts=terminated | truncated,
            final_observations=None,
            infos=infos,
        )
        result = self._step(self, result)
        restarted = infos.get("worker_restarted")
        if restarted is None:
            return result
        # The environment was replaced in mid-episode; this row only shows the new one's start.
        return result._replace(valid=result.valid & ~np.asarray(restarted, np.bool_))

    def _next_step(self, result: Transitions) -> Transitions:
        """A done environment shows its last observation now and its reset in the next row."""
        self.pending, reset = result.terminated | result.truncated, self.pending
        result = result._replace(starts=reset)
        if not result.truncated.any():
            return result
        return result._replace(final_observations=_rows(result.observations, result.truncated))

    def _same_step(self, result: Transitions) -> Transitions:
        """A done environment shows its reset now; its last observation is in the infos."""
        if not result.truncated.any():
            return result
        if "final_obs" not in result.infos:
            raise ValueError(
                "the vector environment truncated an episode in autoreset mode SAME_STEP but its "
                "infos have no 'final_obs', without which the cut-off return cannot be estimated"
            )
        final = result.infos["final_obs"]
        return result._replace(final_observations=_stack(final, result.truncated))

    def _disabled(self, result: Transitions) -> Transitions:
        """A done environment shows its last observation; it is reset here, before the next step."""
        done = result.terminated | result.truncated
        if not done.any():
            return result
        if result.truncated.any():
            # Copied, since the environment may write the reset into the same memory.
            final = _rows(result.observations, result.truncated)
            result = result._replace(final_observations=final)
        observations, infos = self._env.reset(options={"reset_mask": done})
        return result._replace(observations=observations, infos=_merged(result.infos, infos, done))


_MODES: dict[AutoresetMode, Callable[[Stepper, Transitions], Transitions]] = {
    AutoresetMode.NEXT_STEP: Stepper._next_step,
    AutoresetMode.SAME_STEP: Stepper._same_step,
    AutoresetMode.DISABLED: Stepper._disabled,
}


def _let_go(env: VectorEnv[Any, Any, Any], name: str) -> None:
    """Waits for the end of a pending call, whose result nobody wants any more."""
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        getattr(env, f"{name}_wait")()


def _merged(infos: dict[str, Any], reset: dict[str, Any], done: BoolArray) -> dict[str, Any]:
    """Returns a step's infos with the action masks that a reset of some environments gave."""
    if ACTION_MASK not in reset or ACTION_MASK not in infos:
        return infos
    masks, present = infos[ACTION_MASK].copy(), infos[f"_{ACTION_MASK}"].copy()
    masks[done], present[done] = reset[ACTION_MASK][done], reset[f"_{ACTION_MASK}"][done]
    return {**infos, ACTION_MASK: masks, f"_{ACTION_MASK}": present}


def _rows(batch: Any, mask: BoolArray) -> Any:
    """Returns a copy of the rows where `mask` is True, of a batch of any nesting."""
    if isinstance(batch, dict):
        return {key: _rows(value, mask) for key, value in batch.items()}
    return np.asarray(batch)[mask]


def _stack(observations: Any, mask: BoolArray) -> Any:
    """Returns single observations, held in an object array or a dict of arrays, as a batch."""
    if isinstance(observations, dict):
        values = {k: v for k, v in observations.items() if not k.startswith("_")}
        return {key: _stack(value, mask) for key, value in values.items()}
    chosen = [observations[i] for i in np.flatnonzero(mask)]
    if isinstance(chosen[0], dict):
        return {key: np.stack([item[key] for item in chosen]) for key in chosen[0]}
    return np.stack(chosen)
