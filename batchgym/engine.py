"""Workers, shared arrays and infos put together: what a vector environment runs on."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import logger

from batchgym import frames, host
from batchgym.actions import ActionSender
from batchgym.errors import EnvironmentFailedError
from batchgym.failures import report
from batchgym.handshake import Spaces, batch_spaces, greet, share_buffers
from batchgym.info_reader import InfoReader
from batchgym.info_schema import InfoEntry
from batchgym.memory import SharedMemory
from batchgym.messages import ActionDtypes, Call, Hello, Reply, Reset, Schema, SetAttr, Start, Step
from batchgym.observation_batch import MessageObservations, ObservationBatch, SharedObservations
from batchgym.options import Options
from batchgym.pool import WorkerPool, encode, slices
from batchgym.registered_specs import user_specs
from batchgym.restart import Restarts

StepRows = tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]


class Engine:
    """Starts workers, sends them work and collects what they return.

    It knows no order of calls: that is the vector environment's business.

    Args:
        options: Checked constructor arguments of the vector environment.
        name: Class name of the vector environment.

    Raises:
        WorkerStartError: If processes, descriptors, memory or time run out.
        WorkerDiedError: If a worker dies.
        RuntimeError: If the environments' spaces differ.
        Exception: Whatever an environment function raises.
    """

    def __init__(self, options: Options, name: str) -> None:
        self._options = options
        self.num_envs = len(options.env_fns)
        self.slices = slices(self.num_envs, options.num_workers + int(options.owner_steps))
        self.spin = options.num_workers + 1 if host.spinning_pays(len(self.slices)) else 0
        self.failed: set[int] = set()
        self._memory = SharedMemory()
        self.pool = WorkerPool(
            name, self._starts(), self._memory, options.worker_environ, options.owner_steps
        )
        try:
            hellos = greet(self.pool, options.start_timeout)
            self._set_up(hellos)
            self.pool.started()
        except BaseException:
            self.pool.shut_down(0.0)
            raise

    def _starts(self) -> list[Start]:
        options, specs = self._options, user_specs()
        return [
            Start(
                worker=index,
                first=envs.start,
                env_fns=tuple(options.env_fns[envs.start : envs.stop]),
                autoreset_mode=options.autoreset_mode,
                infos=options.infos,
                spin=self.spin,
                specs=specs,
            )
            for index, envs in enumerate(self.slices)
        ]

    def _set_up(self, hellos: list[Hello]) -> None:
        options, num_envs = self._options, self.num_envs
        self.hello = hellos[0]
        self.spaces: Spaces = batch_spaces(hellos, num_envs, options.observation_mode)
        setup, self._buffers = share_buffers(
            self.pool,
            self._memory,
            self.spaces,
            num_envs,
            options.shared_memory,
            options.observation_mode,
        )
        single = self.spaces.single_observation
        self._actions = ActionSender(self.spaces.single_action, num_envs, self._buffers.actions)
        self._infos = InfoReader(num_envs)
        self.observations: ObservationBatch = (
            SharedObservations(single, num_envs, self._buffers)
            if options.shared_memory
            else MessageObservations(single, num_envs)
        )
        self.restarts = Restarts(self.pool, options, setup, self._buffers, self.observations)

    def send_reset(
        self, env_ids: Iterable[int], seeds: list[int | None], options: dict[str, Any] | None
    ) -> None:
        """Starts to reset some environments, each with its seed of the list."""
        chosen = list(env_ids)
        self.failed.difference_update(chosen)
        self.restarts.remember(seeds)
        self.restarts.replace_dead()
        messages = []
        for envs in self.slices:
            mine = [index for index in chosen if index in envs]
            slots = tuple(index - envs.start for index in mine)
            messages.append(encode(Reset(slots, tuple(seeds[i] for i in mine), options)))
        self.pool.request(messages)

    def send_step(self, actions: Any) -> None:
        """Starts to step every environment. Nothing is sent unless all actions are right."""
        self.refuse_failed(range(self.num_envs))
        if self._actions.share(actions):
            messages = [frames.STEP] * len(self.slices)
        else:
            messages = self._step_messages(actions)
        if self.pool.deaths:
            self.restarts.revive_dead("step")
        self.pool.request(messages)

    @property
    def shared_actions(self) -> npt.NDArray[Any] | None:
        """The shared array of actions, where an action is one array and not several or none."""
        return self._actions.shared

    def check_actions(self, actions: Any, num_envs: int) -> tuple[Any, ...]:
        """Returns one action per environment; raises TypeError or ValueError."""
        return self._actions.split(actions, num_envs)

    def send_step_rows(
        self, rows: tuple[Any, ...], env_ids: npt.NDArray[np.intp], batch: Any
    ) -> None:
        """Starts to step some environments, each of which answers for itself.

        Args:
            rows: One action per environment.
            env_ids: The environments.
            batch: The same actions as a batch that may be shared, or None.
        """
        shared = batch is not None and self._actions.share_rows(batch, env_ids)
        for worker, envs in zip(self.pool.workers, self.slices, strict=True):
            mine = [p for p, index in enumerate(env_ids) if index in envs]
            if mine:
                slots = tuple(int(env_ids[p]) - envs.start for p in mine)
                picked = None if shared else tuple(rows[p] for p in mine)
                worker.request(encode(Step(slots, picked, one_by_one=True)), len(mine))

    def send_reset_rows(self, env_ids: npt.NDArray[np.intp], seeds: list[int | None]) -> None:
        """Starts to reset some environments, each of which answers for itself."""
        self.failed.difference_update(env_ids.tolist())
        for worker, envs in zip(self.pool.workers, self.slices, strict=True):
            mine = [p for p, index in enumerate(env_ids) if index in envs]
            if mine:
                slots = tuple(int(env_ids[p]) - envs.start for p in mine)
                message = Reset(slots, tuple(seeds[p] for p in mine), None, one_by_one=True)
                worker.request(encode(message), len(mine))

    def send_call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Starts to call a method of every environment."""
        self.restarts.refuse_dead()
        self.pool.request([encode(Call(name, args, kwargs))] * len(self.slices))

    def send_set_attr(self, name: str, values: list[Any] | tuple[Any, ...]) -> None:
        """Starts to set an attribute of every environment."""
        self.restarts.refuse_dead()
        self.pool.request(
            [encode(SetAttr(name, tuple(values[envs.start : envs.stop]))) for envs in self.slices]
        )

    def collect(self, timeout: float | None, during: str) -> list[Reply]:
        """Waits for the workers' replies to a call.

        Raises:
            multiprocessing.TimeoutError: After `timeout` seconds; the call is still pending then.
            WorkerDiedError: If a worker has died.
            Exception: Whatever an environment raised.
        """
        replies = self.pool.gather(timeout, during)
        self.restarts.refuse_dead()
        failures = [failure for reply in replies for failure in reply.failures]
        if failures:
            raise report(failures)
        return replies

    def collect_batch(self, timeout: float | None, during: str) -> dict[str, Any]:
        """Waits for the end of a step or reset; returns its infos. Raises as `collect`."""
        replies = self.pool.gather(timeout, f"{during}_wait")
        if self.pool.deaths:
            self.restarts.revive_dead(during)
            replies += self.pool.take_answers()
        if not replies:
            return self.shared_infos()
        failures = [failure for reply in replies for failure in reply.failures]
        self.take_in(replies)
        if failures:
            self.failed.update(failure.env_index for failure in failures)
            raise report(failures)
        infos = self._infos.read(replies)
        self.learn_infos()
        return infos

    def shared_infos(self) -> dict[str, Any]:
        """Returns the infos of a step whose workers had nothing else to tell."""
        return self._infos.read_shared()

    def take_in(self, replies: list[Reply]) -> None:
        """Takes observations that came as messages."""
        self.observations.update(
            {index: leaves for reply in replies for index, leaves in reply.observations.items()}
        )

    def infos_of(self, replies: list[Reply], env_ids: npt.NDArray[np.intp]) -> dict[str, Any]:
        """Returns the batched infos of some environments."""
        return self._infos.read(replies, env_ids)

    def step_rows(self, env_ids: npt.NDArray[np.intp] | None = None) -> StepRows:
        """Returns copies of rewards, terminations and truncations; of some environments or all."""
        buffers = self._buffers
        if env_ids is None:
            return (
                buffers.rewards.copy(),
                buffers.terminations.copy(),
                buffers.truncations.copy(),
            )
        return (
            buffers.rewards[env_ids],
            buffers.terminations[env_ids],
            buffers.truncations[env_ids],
        )

    def learn_infos(self) -> None:
        """Lets numbers that came as messages go through shared memory from now on."""
        entries: tuple[InfoEntry, ...] | None = self._infos.learner.revise()
        if entries is None:
            return
        requests = [r for entry in entries for r in entry.requests(self.num_envs)]
        schema = Schema(self.num_envs, self._memory.extend(requests), entries)
        self.restarts.repeat(schema)
        self.pool.post(schema)
        self._infos.install(entries, self._memory.arrays(schema.region, requests))

    def refuse_failed(self, env_ids: Iterable[int]) -> None:
        """Raises EnvironmentFailedError if one of these raised in its last step or reset."""
        if self.failed and (failed := sorted(self.failed.intersection(env_ids))):
            raise EnvironmentFailedError(
                f"Environments {failed} raised in their last `step` or `reset`, so that their "
                "state is unknown. Call `reset` before the next step, for them alone with "
                "options={'reset_mask': ...}."
            )

    def close(self, timeout: float) -> None:
        """Closes environments and workers within about `timeout` seconds."""
        for reply in self.pool.close(time.monotonic() + timeout):
            for failure in reply.failures:
                logger.warn(
                    f"Environment {failure.env_index} raised in `{failure.doing}`:\n"
                    f"{failure.traceback}"
                )
        # The mapped memory, and a descriptor of it, live as long as an array of it does.
        self.observations.detach()
        del self._buffers, self._actions, self._infos, self.restarts

    def _step_messages(self, actions: Any) -> list[bytes]:
        """Returns each worker's frame for actions that are not of the current dtypes."""
        rows = self._actions.split(actions)
        dtypes = self._actions.adapt(actions)
        if dtypes is None:
            return [
                encode(Step(tuple(range(len(envs))), rows[envs.start : envs.stop]))
                for envs in self.slices
            ]
        self.restarts.repeat(ActionDtypes(dtypes))
        self.pool.post(ActionDtypes(dtypes))
        self._actions.share(actions)
        return [frames.STEP] * len(self.slices)
