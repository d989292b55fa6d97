"""Replacing workers that have died."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space, iterate

from batchgym.buffers import Buffers
from batchgym.errors import WorkerDiedError, WorkerStartError, describe_envs
from batchgym.failures import restore
from batchgym.messages import Reply, Reset, Setup
from batchgym.observation_batch import ObservationBatch
from batchgym.options import Options
from batchgym.pool import WorkerPool, encode
from batchgym.process import WorkerProcess, decode

MARK = "worker_restarted"


class Restarts:
    """Replaces each worker at most `restart_workers` times.

    The environments of a new worker are reset with seeds derived from those they last had. For the
    call that the old worker did not answer they come back truncated, with `info[MARK]`:
    * NEXT_STEP: the observation is the first of the new episode; the next step resets once more,
      as after every episode;
    * SAME_STEP: `final_obs` is the first observation of the new episode, as the last one of the
      old is lost, and `final_info` is empty;
    * DISABLED: the observation is the first of the new episode, which can be stepped.
    """

    def __init__(
        self,
        pool: WorkerPool,
        options: Options,
        setup: Setup,
        buffers: Buffers,
        observations: ObservationBatch,
    ) -> None:
        self._pool = pool
        self._options = options
        self._setup = setup
        self._buffers = buffers
        self._observations = observations
        self._one = batch_space(setup.observation_space, 1)
        self._left = [options.restart_workers] * len(pool.workers)
        self._seeds: list[int | None] = [None] * setup.num_envs
        self._repeated: dict[type[Any], Any] = {}

    def remember(self, seeds: list[int | None]) -> None:
        """Takes note of the seeds of a reset."""
        self._seeds = [
            old if new is None else new for old, new in zip(self._seeds, seeds, strict=True)
        ]

    def repeat(self, message: Any) -> None:
        """Takes note of a message that a new worker has to be told as well."""
        self._repeated[type(message)] = message

    def refuse_dead(self) -> None:
        """Raises WorkerDiedError if a worker has died."""
        for death in self._pool.deaths.values():
            raise death

    def replace_dead(self) -> None:
        """Replaces what has died, for a reset that comes next."""
        for index in list(self._pool.deaths):
            self._replace(index)

    def revive_dead(self, during: str) -> None:
        """Replaces what has died, and answers its pending step or reset."""
        for index in list(self._pool.deaths):
            self._pool.answer(index, self.revive(index, during))

    def revive(self, index: int, during: str) -> Reply:
        """Replaces a worker, resets its environments, and returns the reply it owes.

        Raises:
            WorkerDiedError: If it was replaced too often.
        """
        while True:
            worker = self._replace(index)
            try:
                reply = self._reset(worker, pend=during == "step")
            except WorkerDiedError as death:
                self._pool.deaths[index] = death
                continue
            self._mark(worker.env_indices, during, reply)
            return reply

    def _replace(self, index: int) -> WorkerProcess:
        while True:
            death = self._pool.deaths[index]
            if self._left[index] == 0:
                raise death
            self._left[index] -= 1
            worker = self._pool.replace(index)
            try:
                self._greet(worker)
            except WorkerDiedError as again:
                self._pool.deaths[index] = again
                continue
            return worker

    def _greet(self, worker: WorkerProcess) -> None:
        worker.outstanding += 1
        self._answer(worker, self._options.start_timeout)
        worker.request(encode(self._setup))
        self._answer(worker, self._options.start_timeout)
        for message in self._repeated.values():
            worker.post(encode(message))

    def _reset(self, worker: WorkerProcess, *, pend: bool) -> Reply:
        envs = worker.env_indices
        count = self._options.restart_workers - self._left[worker.index]
        seeds = tuple(self._derived_seed(index, count) for index in envs)
        worker.request(encode(Reset(tuple(range(len(envs))), seeds, None, pend=pend)))
        return self._answer(worker, None)

    def _derived_seed(self, env_index: int, count: int) -> int | None:
        seed = self._seeds[env_index]
        if seed is None:
            return None
        return int(np.random.SeedSequence([seed, env_index, count]).generate_state(1)[0])

    def _answer(self, worker: WorkerProcess, timeout: float | None) -> Reply:
        frame = worker.receive(timeout, "restart")
        if frame is None:
            worker.kill()
            raise WorkerStartError(
                f"The restarted worker {worker.index} ({describe_envs(worker.env_indices)}) was "
                f"not ready within {timeout} seconds (`start_timeout`)."
            )
        reply: Reply = decode(frame) or Reply()
        for failure in reply.failures:
            raise restore(failure)
        return reply

    def _mark(self, envs: range, during: str, reply: Reply) -> None:
        rows = slice(envs.start, envs.stop)
        self._buffers.rewards[rows] = 0.0
        self._buffers.terminations[rows] = False
        self._buffers.truncations[rows] = during == "step"
        self._observations.update(reply.observations)
        same_step = self._options.autoreset_mode is AutoresetMode.SAME_STEP
        for index in envs:
            info: dict[str, Any] = {MARK: True}
            if during == "step" and same_step:
                info.update(final_obs=self._observation(index), final_info={})
            infos = reply.raw_infos if index in reply.raw_infos else reply.infos
            infos[index] = {**infos.get(index, {}), **info}

    def _observation(self, env_index: int) -> Any:
        batch = self._observations.rows(np.array([env_index]))
        return next(iter(iterate(self._one, batch)))
