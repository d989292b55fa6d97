"""ProcessVectorEnv: many environments in few worker processes."""

from __future__ import annotations

import multiprocessing
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import logger
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.async_vector_env import AsyncState

from batchgym import frames, host, options as checks
from batchgym.actions import ActionSender
from batchgym.failures import report
from batchgym.handshake import batch_spaces, greet, share_buffers
from batchgym.info_reader import InfoReader
from batchgym.memory import SharedMemory
from batchgym.messages import ActionDtypes, Call, Reply, Reset, Schema, SetAttr, Start, Step
from batchgym.observation_batch import MessageObservations, ObservationBatch, SharedObservations
from batchgym.pool import WorkerPool, encode, shut_down_at_exit, slices
from batchgym.registered_specs import user_specs
from batchgym.requests import Seeds, split_options, spread_seeds

_CLOSE_SECONDS = 10.0
_RESERVED_CALLS = ("reset", "step", "close", "_setattr", "_check_spaces")

StepBatch = tuple[
    Any, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]
]


class ProcessVectorEnv(VectorEnv[Any, Any, Any]):
    """Steps environments in worker processes."""

    def __init__(
        self,
        env_fns: Sequence[checks.EnvFn],
        shared_memory: bool = True,
        copy: bool = True,
        context: str | None = None,
        daemon: bool = True,
        worker: object = None,
        observation_mode: checks.ObservationMode = "same",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        max_concurrency: int | None = None,
        *,
        num_workers: int | None = None,
        infos: str | Sequence[str] = "all",
        restart_workers: int = 0,
        start_timeout: float | None = 300.0,
        worker_environ: Mapping[str, str] | None = None,
    ) -> None:
        if worker is not None:
            raise ValueError(
                "ProcessVectorEnv has no `worker` argument to honour: its workers own several "
                "environments each. Put the logic into a wrapper of the environment, or use "
                "gymnasium.vector.AsyncVectorEnv."
            )
        self.num_envs = checks.check_env_fns(env_fns)
        checks.check_max_concurrency(max_concurrency)
        checks.check_context(context)
        checks.check_observation_mode(observation_mode)
        self.env_fns = env_fns
        self.shared_memory = shared_memory
        self.copy = copy
        self.context = context
        self.daemon = daemon
        self.worker = worker
        self.observation_mode = observation_mode
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.max_concurrency = max_concurrency
        self.num_workers = checks.check_num_workers(num_workers, self.num_envs, max_concurrency)
        self.infos = checks.check_infos(infos)
        self.restart_workers = checks.check_count("restart_workers", restart_workers)
        self.start_timeout = start_timeout
        self._state = AsyncState.DEFAULT
        self._failed: set[int] = set()
        self._start(dict(worker_environ or {}))

    def _start(self, worker_environ: dict[str, str]) -> None:
        self._memory = SharedMemory()
        self._slices = slices(self.num_envs, self.num_workers)
        spin, specs = host.spinning_pays(self.num_workers), user_specs()
        starts = [
            Start(
                worker=index,
                first=envs.start,
                env_fns=tuple(self.env_fns[envs.start : envs.stop]),
                autoreset_mode=self.autoreset_mode,
                infos=self.infos,
                spin=spin,
                specs=specs,
            )
            for index, envs in enumerate(self._slices)
        ]
        self._pool = WorkerPool(type(self).__name__, starts, self._memory, worker_environ)
        self._finalizer = weakref.finalize(self, shut_down_at_exit, self._pool)
        try:
            hellos = greet(self._pool, self.start_timeout)
            self.metadata = {**hellos[0].metadata, "autoreset_mode": self.autoreset_mode}
            self.render_mode = hellos[0].render_mode
            spaces = batch_spaces(hellos, self.num_envs, self.observation_mode)
            self.single_observation_space = spaces.single_observation
            self.observation_space = spaces.observation
            self.single_action_space = spaces.single_action
            self.action_space = spaces.action
            self._setup, self._buffers = share_buffers(
                self._pool,
                self._memory,
                spaces,
                self.num_envs,
                self.shared_memory,
                self.observation_mode,
            )
        except BaseException:
            self._finalizer.detach()
            self._pool.shut_down(0.0)
            raise
        self._actions = ActionSender(spaces.single_action, self.num_envs, self._buffers.actions)
        self._infos = InfoReader(self.num_envs)
        self._observations: ObservationBatch = (
            SharedObservations(spaces.single_observation, self.num_envs, self._buffers)
            if self.shared_memory
            else MessageObservations(spaces.single_observation, self.num_envs)
        )

    @property
    def observations(self) -> Any:
        """The batched observations as they are now; the next step changes them."""
        return self._observations.current

    @property
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
        """Resets the environments."""
        self.reset_async(seed=seed, options=options)
        return self.reset_wait()

    def reset_async(self, seed: Seeds = None, options: dict[str, Any] | None = None) -> None:
        """Starts a reset."""
        self._expect_idle("reset_async")
        seeds = spread_seeds(seed, self.num_envs)
        options, mask = split_options(options, self.num_envs)
        chosen = range(self.num_envs) if mask is None else np.flatnonzero(mask).tolist()
        self._failed.difference_update(chosen)
        messages = []
        for envs in self._slices:
            mine = [index for index in chosen if index in envs]
            slots = tuple(index - envs.start for index in mine)
            messages.append(encode(Reset(slots, tuple(seeds[i] for i in mine), options)))
        self._state = AsyncState.WAITING_RESET
        self._pool.request(messages)

    def reset_wait(self, timeout: float | None = None) -> tuple[Any, dict[str, Any]]:
        """Waits for a reset."""
        infos = self._wait(AsyncState.WAITING_RESET, timeout)
        return self._observe(), infos

    def step(self, actions: Any) -> StepBatch:
        """Steps every environment."""
        self.step_async(actions)
        return self.step_wait()

    def step_async(self, actions: Any) -> None:
        """Starts a step."""
        self._expect_idle("step_async")
        messages = [frames.STEP] * self.num_workers
        if not self._actions.share(actions):
            rows = self._actions.split(actions)
            dtypes = self._actions.adapt(actions)
            if dtypes is not None:
                self._pool.post(ActionDtypes(dtypes))
                self._actions.share(actions)
            else:
                messages = [
                    encode(Step(tuple(range(len(envs))), rows[envs.start : envs.stop]))
                    for envs in self._slices
                ]
        self._state = AsyncState.WAITING_STEP
        self._pool.request(messages)

    def step_wait(self, timeout: float | None = None) -> StepBatch:
        """Waits for a step."""
        infos = self._wait(AsyncState.WAITING_STEP, timeout)
        buffers = self._buffers
        return (
            self._observe(),
            buffers.rewards.copy(),
            buffers.terminations.copy(),
            buffers.truncations.copy(),
            infos,
        )

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Calls a method of every environment, or gets an attribute."""
        self.call_async(name, *args, **kwargs)
        return self.call_wait()

    def call_async(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Starts a call."""
        self._expect_idle("call_async")
        if name in _RESERVED_CALLS:
            raise ValueError(
                f"Trying to call function `{name}` with `call`, use `{name}` directly instead."
            )
        message = encode(Call(name, args, kwargs))
        self._state = AsyncState.WAITING_CALL
        self._pool.request([message] * self.num_workers)

    def call_wait(self, timeout: float | None = None) -> tuple[Any, ...]:
        """Waits for a call."""
        replies = self._gather(AsyncState.WAITING_CALL, timeout)
        return tuple(value for reply in replies for value in reply.value)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Gets an attribute of every environment; a callable one is called, as in Gymnasium."""
        return self.call(name)

    def set_attr(self, name: str, values: list[Any] | tuple[Any, ...] | Any) -> None:
        """Sets an attribute of every environment."""
        self._expect_idle("set_attr")
        if not isinstance(values, (list, tuple)):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ValueError(
                "Values must be a list or tuple with length equal to the number of environments. "
                f"Got `{len(values)}` values for {self.num_envs} environments."
            )
        messages = [
            encode(SetAttr(name, tuple(values[envs.start : envs.stop]))) for envs in self._slices
        ]
        self._state = AsyncState.WAITING_CALL
        self._pool.request(messages)
        self._gather(AsyncState.WAITING_CALL, None)

    def render(self) -> tuple[Any, ...] | None:
        """Returns what each environment renders."""
        return self.call("render")

    def close_extras(self, timeout: float | None = None, terminate: bool = False) -> None:
        """Closes the environments and ends the workers; always returns."""
        if not self._finalizer.detach():
            return
        timeout = _CLOSE_SECONDS if timeout is None else timeout
        deadline = time.monotonic() + (0.0 if terminate else timeout)
        if self._state != AsyncState.DEFAULT:
            logger.warn(
                f"Calling `close` while waiting for a pending call to `{self._state.value}` "
                "to complete."
            )
        replies = self._pool.close(deadline)
        for reply in replies:
            for failure in reply.failures:
                logger.warn(
                    f"Environment {failure.env_index} raised in `{failure.doing}`:\n"
                    f"{failure.traceback}"
                )

    def _observe(self) -> Any:
        return self._observations.copy() if self.copy else self._observations.current

    def _wait(self, state: AsyncState, timeout: float | None) -> dict[str, Any]:
        """Waits for a step or reset and returns its infos."""
        replies = self._gather(state, timeout)
        self._observations.update(
            {index: leaves for reply in replies for index, leaves in reply.observations.items()}
        )
        infos = self._infos.read(replies)
        if replies:
            self._learn_infos()
        return infos

    def _learn_infos(self) -> None:
        """Moves numbers that came as messages to shared memory from now on."""
        entries = self._infos.learner.revise()
        if entries is None:
            return
        requests = [r for entry in entries for r in entry.requests(self.num_envs)]
        region = self._memory.extend(requests)
        self._pool.post(Schema(self.num_envs, region, entries))
        self._infos.install(entries, self._memory.arrays(region, requests))

    def _gather(self, state: AsyncState, timeout: float | None) -> list[Reply]:
        name = f"{state.value}_wait"
        self._expect_open()
        if self._state is not state:
            raise NoAsyncCallError(
                f"Calling `{name}` without any prior call to `{state.value}_async`.", state.value
            )
        replies = self._pool.gather(timeout, name)
        self._state = AsyncState.DEFAULT
        if self._pool.deaths:
            raise next(iter(self._pool.deaths.values()))
        failures = [failure for reply in replies for failure in reply.failures]
        if failures:
            if state is not AsyncState.WAITING_CALL:
                self._failed.update(failure.env_index for failure in failures)
            raise report(failures)
        return replies

    def _expect_open(self) -> None:
        if self.closed:
            raise ClosedEnvironmentError(
                f"Trying to operate on `{type(self).__name__}`, after a call to `close()`."
            )

    def _expect_idle(self, doing: str) -> None:
        self._expect_open()
        if self._state is not AsyncState.DEFAULT:
            raise AlreadyPendingCallError(
                f"Calling `{doing}` while waiting for a pending call to `{self._state.value}` "
                "to complete.",
                self._state.value,
            )
        if self._pool.deaths:
            raise next(iter(self._pool.deaths.values()))
