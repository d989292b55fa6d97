"""ProcessVectorEnv: many environments in few worker processes."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from gymnasium import logger
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.async_vector_env import AsyncState

from batchgym.engine import Engine
from batchgym.first_ready import EnvIds, FirstReady, ReadyBatch
from batchgym.options import EnvFn, ObservationMode, check_options
from batchgym.pool import shut_down_at_exit
from batchgym.process import WorkerProcess
from batchgym.reset_arguments import Seeds, split_options, spread_seeds
from batchgym.usual_step import UsualStep

_CLOSE_SECONDS = 10.0
_RESERVED_CALLS = ("reset", "step", "close", "_setattr", "_check_spaces")

_T = TypeVar("_T")
StepBatch = tuple[
    Any, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]
]


class ProcessVectorEnv(VectorEnv[Any, Any, Any]):
    """Steps environments in parallel, several in each of a few worker processes.

    A drop-in for `gymnasium.vector.AsyncVectorEnv`: the same arguments in the same order, the same
    attributes, methods and errors, and the same numbers as `SyncVectorEnv` for the same seeds.
    Beside that it has `send`, `send_reset` and `recv` for environments of uneven speed.

    What it guarantees:

    1. Workers are fresh interpreters (fork + exec). The caller's threads, locks and libraries, such
       as TensorFlow, are not inherited, and not loaded.
    2. No `if __name__ == "__main__"` is needed: the caller's script is not imported again, and
       classes and functions that it defines travel by value, both ways.
    3. A crash is an error, never a deadlock: a worker that dies in any way raises WorkerDiedError,
       which names its environments and its exit code or signal.
    4. An environment's exception is raised again in the caller, as the same object where it can be
       pickled, with the worker's traceback as its cause. The other environments are not affected;
       the one that failed must be reset before the next step.
    5. No result is lost by a timeout: the call stays pending and can be waited for again.
    6. Nothing is sent unless every action, seed or value of the call is acceptable.
    7. `close` returns, also if a worker hangs in C code: it asks, terminates, then kills.
    8. Workers never outlive their owner, whether it returns, raises, drops the object, is
       interrupted by Ctrl-C, or is killed by SIGKILL, and whatever they are doing then.
    9. Nothing is left behind: no process, descriptor, thread, shared memory or file.
    10. Shared memory that the machine does not have is an error when the object is made.

    Args:
        env_fns: Functions that make the environments, one each. They run in the workers only.
        shared_memory: Whether observations travel in shared memory, which is faster; otherwise they
            are pickled.
        copy: Whether `reset` and `step` return copies of the observations; otherwise they return
            `observations` itself, which the next step overwrites.
        context: A start method of `multiprocessing`, accepted for compatibility. Whatever it is,
            workers are fresh interpreters, which serves the purpose of all three.
        daemon: Accepted for compatibility. What either value is for always holds: workers end with
            their owner, and environments may start processes of their own.
        worker: Only None. Workers own several environments each, so that there is no place for a
            function that serves one.
        observation_mode: `"same"` if all observation spaces are equal, `"different"` if only their
            shapes and dtypes are, or a pair (batched space, space of one environment).
        autoreset_mode: What happens at the end of an episode, see Gymnasium's AutoresetMode.
        max_concurrency: At most this many environments run at the same time; None for no limit.
        num_workers: Worker processes; by default one per usable core. Never more than environments,
            which are divided among them as evenly as possible.
        owner_steps: Whether this process steps a share of the environments itself instead of
            waiting, as one of the usable cores. Faster where the environments are cheap or few: up
            to twice as fast for 8 CartPoles. What it costs is part of guarantees 1, 3 and 7: what
            the first environments do to their process (crash, hang, change global state, print,
            start threads), they do to this one, and no timeout ends their step. With
            `num_workers=0` it steps them all.
        infos: `"all"`, `"none"`, or the keys to keep. `final_obs` is always kept.
        restart_workers: How often each worker may be replaced after it has died. Its environments
            then come back truncated and freshly reset with derived seeds, and the info
            `worker_restarted` marks them, since these rows are no transitions. What `set_attr` has
            set in them is lost.
        start_timeout: Seconds until all environments must have been made; None for no limit.
        worker_environ: Environment variables of the workers. By default numerical libraries use
            one thread each, and no GPU is visible.

    Raises:
        WorkerStartError: If processes, descriptors, shared memory or time run out.
        WorkerDiedError: If a worker dies while it makes its environments.
        RuntimeError: If the spaces of the environments do not match.
        ValueError: If an argument has a value that is not allowed.
        TypeError: If an argument is of a wrong type.
        Exception: Whatever an environment function raises.

    Example:
        >>> import gymnasium
        >>> env = gymnasium.make_vec("batchgym:batchgym/CartPole-v1", num_envs=64)
        >>> observations, infos = env.reset(seed=0)
        >>> observations.shape
        (64, 4)
        >>> env.close()
    """

    def __init__(
        self,
        env_fns: Sequence[EnvFn],
        shared_memory: bool = True,
        copy: bool = True,
        context: str | None = None,
        daemon: bool = True,
        worker: object = None,
        observation_mode: ObservationMode = "same",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        max_concurrency: int | None = None,
        *,
        num_workers: int | None = None,
        owner_steps: bool = False,
        infos: str | Sequence[str] = "all",
        restart_workers: int = 0,
        start_timeout: float | None = 300.0,
        worker_environ: Mapping[str, str] | None = None,
    ) -> None:
        options = check_options(
            env_fns=env_fns,
            shared_memory=shared_memory,
            worker=worker,
            context=context,
            observation_mode=observation_mode,
            autoreset_mode=autoreset_mode,
            max_concurrency=max_concurrency,
            num_workers=num_workers,
            owner_steps=owner_steps,
            infos=infos,
            restart_workers=restart_workers,
            start_timeout=start_timeout,
            worker_environ=worker_environ,
        )
        self.env_fns = env_fns
        self.shared_memory = shared_memory
        self.copy = copy
        self.context = context
        self.daemon = daemon
        self.worker = worker
        self.observation_mode = observation_mode
        self.autoreset_mode = options.autoreset_mode
        self.max_concurrency = max_concurrency
        self.num_workers = options.num_workers
        self.owner_steps = options.owner_steps
        self.infos = options.infos
        self.restart_workers = restart_workers
        self.start_timeout = start_timeout
        self.worker_environ = dict(options.worker_environ)
        self.num_envs = len(env_fns)
        self._state = AsyncState.DEFAULT
        self._owner = os.getpid()
        self._engine = engine = Engine(options, type(self).__name__)
        self._finalizer = weakref.finalize(self, shut_down_at_exit, engine.pool)
        self._first_ready = FirstReady(engine)
        self._usual_step = UsualStep(engine)
        self.metadata = {**engine.hello.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = engine.hello.render_mode
        self.single_observation_space = engine.spaces.single_observation
        self.observation_space = engine.spaces.observation
        self.single_action_space = engine.spaces.single_action
        self.action_space = engine.spaces.action

    @property
    def observations(self) -> Any:
        """The batched observations as they are now; the next step changes them."""
        return self._engine.observations.current

    @property
    def processes(self) -> list[subprocess.Popen[bytes]]:
        """The worker processes."""
        workers = self._engine.pool.workers
        return [worker.popen for worker in workers if isinstance(worker, WorkerProcess)]

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """The random number generator of each environment, copied."""
        return self.get_attr("np_random")

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The seed of each environment's random number generator."""
        return self.get_attr("np_random_seed")

    def reset(
        self, *, seed: Seeds = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Resets the environments and returns the first observations.

        Args:
            seed: None, an integer (environment i gets `seed + i`), or one seed or None for each.
            options: Passed to each environment, without `reset_mask`: a bool array of shape (N,)
                that selects the environments to reset. The others keep state and observation.

        Returns:
            Observations, batched over the N environments; infos.
        """
        self.reset_async(seed=seed, options=options)
        return self.reset_wait()

    def reset_async(self, seed: Seeds = None, options: dict[str, Any] | None = None) -> None:
        """Starts a reset; `reset_wait` returns its result. Arguments as in `reset`.

        Raises:
            AlreadyPendingCallError: If something else is pending.
            ClosedEnvironmentError: After `close`.
        """
        self._expect_open()
        seeds = spread_seeds(seed, self.num_envs)
        self._expect_idle("reset_async")
        options, mask = split_options(options, self.num_envs)
        chosen = range(self.num_envs) if mask is None else np.flatnonzero(mask).tolist()
        self._first_ready.forget_owed(chosen)
        self._send(AsyncState.WAITING_RESET, self._engine.send_reset, chosen, seeds, options)

    def reset_wait(self, timeout: float | None = None) -> tuple[Any, dict[str, Any]]:
        """Waits for the reset that `reset_async` has started.

        Args:
            timeout: Seconds; None waits for ever.

        Raises:
            multiprocessing.TimeoutError: The reset is still pending then.
            NoAsyncCallError: If none was started.
        """
        self._expect_state(AsyncState.WAITING_RESET)
        infos = self._finish(self._engine.collect_batch, timeout, "reset")
        return self._observe(), infos

    def step(self, actions: Any) -> StepBatch:
        """Steps every environment.

        Args:
            actions: An element of `action_space`, or one action per environment. They reach the
                environments as they are: neither cast nor clipped.

        Returns:
            Observations, batched; rewards, float64 (N,); terminations and truncations, bool (N,);
            infos.

        Raises:
            TypeError: If `actions` is no batch; nothing is sent then.
            ValueError: If there are more or fewer actions than environments; nothing is sent then.
            WorkerDiedError: If a worker dies.
            Exception: Whatever an environment raises.
        """
        self.step_async(actions)
        return self.step_wait()

    def step_async(self, actions: Any) -> None:
        """Starts a step; `step_wait` returns its result. Argument and errors as in `step`."""
        if self._usual_step.accept(actions):
            self._state = AsyncState.WAITING_STEP
            self._usual_step.send()
            return
        self._expect_idle("step_async")
        self._first_ready.refuse_owed()
        self._send(AsyncState.WAITING_STEP, self._engine.send_step, actions)

    def step_wait(self, timeout: float | None = None) -> StepBatch:
        """Waits for the step that `step_async` has started; see `reset_wait`."""
        if timeout is None and self._usual_step.wait():
            self._state = AsyncState.DEFAULT
            infos = self._engine.shared_infos()
        else:
            self._expect_state(AsyncState.WAITING_STEP)
            infos = self._finish(self._engine.collect_batch, timeout, "step")
        return (self._observe(), *self._engine.step_rows(), infos)

    def send(self, actions: Any, env_ids: EnvIds) -> None:
        """Starts to step some environments, without waiting for the others.

        Args:
            actions: One action for each of `env_ids`, in that order.
            env_ids: Indices of environments that are not at work.

        Raises:
            EnvironmentPendingError: If one of them is at work, or named twice.
            AlreadyPendingCallError: If a `reset`, `step` or `call` is pending.
        """
        self._expect_idle("send", first_ready=True)
        self._usual_step.disarm()
        self._first_ready.send(actions, env_ids)

    def send_reset(self, env_ids: EnvIds, seed: Seeds = None) -> None:
        """Starts to reset some environments; they come back with reward 0 and no flag set.

        Args:
            env_ids: Indices of environments that are not at work.
            seed: None, an integer (environment i gets `seed + i`), or one for each of `env_ids`.

        Raises:
            EnvironmentPendingError: If one of them is at work, or named twice.
            AlreadyPendingCallError: If a `reset`, `step` or `call` is pending.
        """
        self._expect_idle("send_reset", first_ready=True)
        self._usual_step.disarm()
        self._first_ready.send_reset(env_ids, seed)

    def recv(self, min_envs: int = 1, timeout: float | None = None) -> ReadyBatch:
        """Waits until some of the environments that were sent something have finished.

        Args:
            min_envs: Wait for at least this many; all that have finished are returned.
            timeout: Seconds; None waits for ever.

        Returns:
            The K environments' indices, int (K,), in the order in which they finished; and their
            observations, rewards, terminations, truncations and infos, batched in that order.

        Raises:
            NothingPendingError: If fewer than `min_envs` environments are at work.
            multiprocessing.TimeoutError: Nothing is lost then.
        """
        self._expect_idle("recv", first_ready=True)
        return self._first_ready.recv(min_envs, timeout)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Calls a method of every environment, or gets an attribute that is not callable.

        Args:
            name: Method or attribute, looked up through the wrappers.
            *args: Arguments of the method.
            **kwargs: Keyword arguments of the method.

        Returns:
            One result per environment.
        """
        self.call_async(name, *args, **kwargs)
        return self.call_wait()

    def call_async(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Starts a call; `call_wait` returns its results."""
        self._expect_idle("call_async")
        if name in _RESERVED_CALLS:
            raise ValueError(
                f"Trying to call function `{name}` with `call`, use `{name}` directly instead."
            )
        self._send(AsyncState.WAITING_CALL, self._engine.send_call, name, args, kwargs)

    def call_wait(self, timeout: float | None = None) -> tuple[Any, ...]:
        """Waits for the call that `call_async` has started; see `reset_wait`."""
        self._expect_state(AsyncState.WAITING_CALL)
        replies = self._finish(self._engine.collect, timeout, "call_wait")
        return tuple(value for reply in replies for value in reply.value)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Gets an attribute of every environment; a callable one is called, as in Gymnasium."""
        return self.call(name)

    def set_attr(self, name: str, values: list[Any] | tuple[Any, ...] | Any) -> None:
        """Sets an attribute of every environment.

        Args:
            name: Attribute, looked up through the wrappers.
            values: A list or tuple with one value per environment; anything else is the value of
                all of them.
        """
        self._expect_open()
        if not isinstance(values, (list, tuple)):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ValueError(
                "Values must be a list or tuple with length equal to the number of environments. "
                f"Got `{len(values)}` values for {self.num_envs} environments."
            )
        self._expect_idle("set_attr")
        self._send(AsyncState.WAITING_CALL, self._engine.send_set_attr, name, values)
        self._finish(self._engine.collect, None, "set_attr")

    def render(self) -> tuple[Any, ...] | None:
        """Returns what each environment renders: N frames, or N times None without render mode."""
        return self.call("render")

    def close_extras(self, timeout: float | None = None, terminate: bool = False) -> None:
        """Closes the environments and ends the workers; called by `close`, always returns.

        Args:
            timeout: Seconds for the environments to close and for a pending call to end, after
                which the workers are killed; None for 10.
            terminate: Kill at once.
        """
        if not self._finalizer.detach():
            return
        self._usual_step.disarm()
        if self._state is not AsyncState.DEFAULT:
            logger.warn(
                f"Calling `close` while waiting for a pending call to `{self._state.value}` "
                "to complete."
            )
        if self._first_ready.pending:
            logger.warn("Calling `close` while environments sent something are not received.")
        seconds = _CLOSE_SECONDS if timeout is None else timeout
        self._engine.close(0.0 if terminate else seconds)

    def _observe(self) -> Any:
        observations = self._engine.observations
        return observations.copy() if self.copy else observations.current

    def _expect_open(self) -> None:
        if self.closed:
            raise ClosedEnvironmentError(
                f"Trying to operate on `{type(self).__name__}`, after a call to `close()`."
            )
        if os.getpid() != self._owner:
            raise RuntimeError(
                f"This {type(self).__name__} belongs to process {self._owner}; process "
                f"{os.getpid()} is a fork of it and has to make its own."
            )

    def _expect_idle(self, doing: str, *, first_ready: bool = False) -> None:
        self._expect_open()
        if self._state is not AsyncState.DEFAULT:
            raise AlreadyPendingCallError(
                f"Calling `{doing}` while waiting for a pending call to `{self._state.value}` "
                "to complete.",
                self._state.value,
            )
        if not first_ready and self._first_ready.pending:
            raise AlreadyPendingCallError(
                f"Calling `{doing}` while {self._first_ready.pending} environments that were sent "
                "something have not been received; call `recv` first.",
                "send",
            )

    def _expect_state(self, state: AsyncState) -> None:
        self._expect_open()
        if self._state is not state:
            raise NoAsyncCallError(
                f"Calling `{state.value}_wait` without any prior call to `{state.value}_async`.",
                state.value,
            )

    def _send(self, state: AsyncState, send: Callable[..., None], *args: Any) -> None:
        """Sends something that is then pending, unless an error says that nothing was sent."""
        self._usual_step.disarm()
        self._state = state
        try:
            send(*args)
        except Exception:
            self._state = AsyncState.DEFAULT
            raise

    def _finish(
        self, collect: Callable[[float | None, str], _T], timeout: float | None, during: str
    ) -> _T:
        """Collects what is pending. After a timeout or Ctrl-C it still is."""
        try:
            result = collect(timeout, during)
        except multiprocessing.TimeoutError:
            raise
        except Exception:
            self._state = AsyncState.DEFAULT
            raise
        self._state = AsyncState.DEFAULT
        if not self._first_ready.owes:
            self._usual_step.arm()
        return result
