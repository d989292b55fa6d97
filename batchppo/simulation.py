"""The fused rollout: policy and environment in one TensorFlow operation."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from batchppo.in_graph_env import InGraphBatchEnv
from batchppo.trajectory import Recorder, Trajectory, trajectory_spec

CHUNK_SECONDS = 0.5
"""After how long an operation returns to Python, so that a signal is handled within a second."""

TensorPolicy: TypeAlias = Callable[..., Any]

_KEPT = 8  # compiled policies per environment


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def simulate(
    env: InGraphBatchEnv,
    policy: TensorPolicy,
    steps: int,
    state: Any = None,
    stop: threading.Event | None = None,
) -> Trajectory:
    """Plays a policy in all environments for T steps, without Python between policy and step.

    Called eagerly it compiles the loop once per policy (pass the same function each time) and
    runs it in operations of at most half a second, between which Ctrl-C is heard; what the
    environment raises arrives as it is. Inside of a `tf.function` all T steps are one operation
    of it, see `InGraphBatchEnv.original_errors`. Gradients do not flow through: call it outside
    of a GradientTape.

    It goes on where the environments are, and resets them only if they never were.

    Args:
        env: the environments.
        policy: a function of TensorFlow operations from observations, shape [N, ...], to actions,
            shape [N, ...]; with a state, from (observations, state) to (actions, state). Actions
            reach the environments as they are, not clipped. Python's `if` and `for` over tensors
            need a `tf.function` around it.
        steps: T.
        state: what the policy remembers, tensors of shape [N, ...] in any nesting: zeros to
            begin, then the `state` of the last trajectory. Rows are set to 0 where an episode
            begins. None for a policy that remembers nothing.
        stop: ends the rollout behind the present step when it is set; the trajectory then has
            fewer rows. Not to be used inside of a `tf.function`.

    Returns:
        The trajectory, time-major.

    Raises:
        ValueError: `steps` is less than 1, or the actions do not fit the action space.
    """
    loop = _loop(env, policy)
    if tf.inside_function():
        if stop is not None:
            raise ValueError("stop= has no effect inside of a tf.function; call simulate eagerly")
        return loop.in_graph(steps, state)
    return loop.run(steps, state, stop)


class _Loop:
    """The loop of one policy and one environment."""

    def __init__(self, env: InGraphBatchEnv, policy: TensorPolicy) -> None:
        self._host = env.host
        self._policy = policy
        self._action_spec = env.action_spec
        self._recorder: Recorder
        self._stop: threading.Event | None = None
        self._deadline = np.inf
        self._error: BaseException | None = None
        self._chunk = tf.function(self._steps, autograph=False)

    def run(self, steps: int, state: Any, stop: threading.Event | None) -> Trajectory:
        """Plays eagerly, a chunk at a time."""
        self._recorder = recorder = Recorder(self._host, steps)
        self._stop, self._error = stop, None
        try:
            state = self._chunks(state)
        finally:
            del self._recorder  # its rows would live as long as the policy
        spec = trajectory_spec(self._host, self._action_spec)
        arrays = [tf.convert_to_tensor(array) for array in recorder.arrays()]
        trajectory: Trajectory = tf.nest.pack_sequence_as(spec, arrays)
        return trajectory._replace(state=state)

    def _chunks(self, state: Any) -> Any:
        recorder = self._recorder
        while recorder.made < recorder.steps and not self._is_stopped():
            self._deadline = time.perf_counter() + CHUNK_SECONDS
            _, state = self._chunk(state)
            if self._error is not None:
                error, self._error = self._error, None
                raise error
        return state

    def in_graph(self, steps: int, state: Any) -> Trajectory:
        """Returns the trajectory's tensors in a graph that is being built."""

        def begin(steps: NDArray[Any]) -> NDArray[Any]:
            self._recorder = Recorder(self._host, int(steps))
            self._stop, self._deadline = None, np.inf
            return steps

        def finish() -> list[NDArray[Any]]:
            arrays = self._recorder.arrays()
            del self._recorder
            return arrays

        count = tf.convert_to_tensor(steps, tf.int32)
        begun = self._host.in_graph(begin, [count], [tf.TensorSpec((), tf.int32)])
        with tf.control_dependencies(begun):
            ended, state = self._steps(state, guarded=False)
        spec = trajectory_spec(self._host, self._action_spec)
        with tf.control_dependencies([ended]):
            trajectory: Trajectory = self._host.in_graph(finish, [], spec)
        return trajectory._replace(state=state)

    def _steps(self, state: Any, guarded: bool = True) -> tuple[tf.Tensor, Any]:
        """Makes steps until `_answer` says that is enough; returns its last word and the state."""
        starts = tf.TensorSpec((self._host.env.num_envs,), tf.bool)
        present = [self._host.observation_spec, *([] if state is None else [starts])]
        answer = self._guarded_answer if guarded else self._answer
        remembers = state is not None

        def body(go_on: tf.Tensor, seen: Any, state: Any) -> Any:
            del go_on
            action, state = self._act(seen, state if remembers else None)
            go_on, seen = self._host.unordered(
                lambda array: answer(array, remembers),
                [action],
                [tf.TensorSpec((), tf.bool), present],
            )
            return go_on, seen, state if remembers else ()

        seen = self._host.unordered(lambda: self._present(remembers), [], present)
        first = (tf.constant(True), seen, state if remembers else ())
        go_on, _, state = tf.while_loop(lambda go, *_: go, body, first, parallel_iterations=1)
        return go_on, state if remembers else None

    def _act(self, seen: list[Any], state: Any) -> tuple[tf.Tensor, Any]:
        if state is None:
            action = tf.convert_to_tensor(self._policy(seen[0]))
        else:
            observation, starts = seen
            state = tf.nest.map_structure(lambda rows: _forget(rows, starts), state)
            action, state = self._policy(observation, state)
            action = tf.convert_to_tensor(action)
        _require_fit(action, self._host.action_spec)
        self._action_spec = tf.TensorSpec(self._host.action_spec.shape, action.dtype)
        return action, state

    def _answer(self, action: NDArray[Any], remembers: bool) -> list[Any]:
        """Makes one step of the environments; returns whether to go on, and what is seen then."""
        recorder = self._recorder
        recorder.step(action)
        go_on = recorder.made < recorder.steps and time.perf_counter() < self._deadline
        return [np.bool_(go_on and not self._is_stopped()), *self._present(remembers)]

    def _guarded_answer(self, action: NDArray[Any], remembers: bool) -> list[Any]:
        try:
            return self._answer(action, remembers)
        except BaseException as error:  # noqa: BLE001 - raised again where Python goes on
            self._error = error
            return [np.bool_(False), *self._present(remembers)]

    def _is_stopped(self) -> bool:
        return self._stop is not None and self._stop.is_set()

    def _present(self, remembers: bool) -> list[NDArray[Any]]:
        present = self._recorder.present
        return present if remembers else present[:-1]


_LOOPS: WeakKeyDictionary[InGraphBatchEnv, OrderedDict[TensorPolicy, _Loop]] = WeakKeyDictionary()


def _loop(env: InGraphBatchEnv, policy: TensorPolicy) -> _Loop:
    """Returns the loop of a policy, the same for the same policy, of which a few are kept."""
    loops = _LOOPS.setdefault(env, OrderedDict())
    if policy not in loops:
        loops[policy] = _Loop(env, policy)
        if len(loops) > _KEPT:
            loops.popitem(last=False)
    loops.move_to_end(policy)
    return loops[policy]


def _forget(rows: tf.Tensor, starts: tf.Tensor) -> tf.Tensor:
    """Returns a state with zeros in the rows that begin an episode."""
    mask = tf.reshape(starts, (-1, *[1] * (rows.shape.rank - 1)))
    return tf.where(mask, tf.zeros((), rows.dtype), rows)


def _require_fit(action: tf.Tensor, spec: tf.TensorSpec) -> None:
    fits = action.shape.is_compatible_with(spec.shape)
    if not fits or (action.dtype.is_floating and not spec.dtype.is_floating):
        raise ValueError(
            f"the policy returned actions of shape {action.shape} and type {action.dtype.name}, "
            f"expected {spec.shape} and {spec.dtype.name}: one action for each environment"
        )
