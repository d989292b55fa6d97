"""First-ready operation: each environment goes its own pace."""

from __future__ import annotations

import multiprocessing
import select
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from batchgym.engine import Engine
from batchgym.errors import (
    EnvironmentFailedError,
    EnvironmentPendingError,
    NothingPendingError,
    WorkerDiedError,
    describe_envs,
)
from batchgym.failures import report
from batchgym.messages import Failure, Reply
from batchgym.pool import Worker
from batchgym.process import decode
from batchgym.reset_arguments import Seeds, spread_seeds
from batchgym.spin import Spin

_ALIVE_CHECK_SECONDS = 1.0

EnvIds = Sequence[int] | npt.NDArray[np.integer[Any]]
ReadyBatch = tuple[
    npt.NDArray[np.intp],
    Any,
    npt.NDArray[np.float64],
    npt.NDArray[np.bool_],
    npt.NDArray[np.bool_],
    dict[str, Any],
]


class FirstReady:
    """Keeps count of which environments are at work and which have finished.

    Args:
        engine: What they run on.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._pending: set[int] = set()
        self._reset_seeds: dict[int, int | None] = {}
        self._ready: dict[int, Reply] = {}
        self._owed: dict[int, Reply] = {}
        self._failures: list[Failure] = []
        self._spin = Spin(engine.spin)

    @property
    def pending(self) -> int:
        """Environments that were sent something and have not been received."""
        return len(self._pending) + len(self._ready)

    @property
    def owes(self) -> bool:
        """Says whether a truncation is owed to somebody who sends an action."""
        return bool(self._owed)

    def send(self, actions: Any, env_ids: EnvIds) -> None:
        """See ProcessVectorEnv.send."""
        ids = self._check_ids(env_ids)
        self._engine.refuse_failed(ids.tolist())
        rows = self._engine.check_actions(actions, len(ids))
        # An environment whose worker was replaced while it had nothing to do is truncated now.
        fresh = np.array([index not in self._owed for index in ids.tolist()], dtype=np.bool_)
        for index in ids[~fresh].tolist():
            self._ready[index] = self._owed.pop(index)
        self._pending.update(ids[fresh].tolist())
        if fresh.all():
            self._engine.send_step_rows(rows, ids, actions)
        else:
            kept = tuple(row for row, keep in zip(rows, fresh, strict=True) if keep)
            self._engine.send_step_rows(kept, ids[fresh], None)

    def send_reset(self, env_ids: EnvIds, seed: Seeds) -> None:
        """See ProcessVectorEnv.send_reset."""
        ids = self._check_ids(env_ids)
        if isinstance(seed, (int, np.integer)):
            seeds: list[int | None] = [int(seed) + index for index in ids.tolist()]
        else:
            seeds = spread_seeds(seed, len(ids))
        self.forget_owed(ids.tolist())
        self._pending.update(ids.tolist())
        self._reset_seeds.update(zip(ids.tolist(), seeds, strict=True))
        self._engine.send_reset_rows(ids, seeds)

    def refuse_owed(self) -> None:
        """Raises EnvironmentFailedError if a `step` would hide that an episode was cut off."""
        if self._owed:
            raise EnvironmentFailedError(
                f"The worker of environments {sorted(self._owed)} was restarted while they had "
                "nothing to do. Send them an action with `send`, which returns their truncation, "
                "or call `reset`."
            )

    def forget_owed(self, env_ids: Iterable[int]) -> None:
        """Says that these environments are reset."""
        for index in env_ids:
            self._owed.pop(index, None)

    def recv(self, min_envs: int, timeout: float | None) -> ReadyBatch:
        """See ProcessVectorEnv.recv."""
        if not 1 <= min_envs <= self.pending:
            raise self._misuse(min_envs)
        deadline = None if timeout is None else time.monotonic() + timeout
        self._read()
        while len(self._ready) < min_envs and not self._failures:
            if not self._wait(deadline):
                raise multiprocessing.TimeoutError(
                    f"The call to `recv` has timed out after {timeout} second(s): "
                    f"{len(self._ready)} environments are ready, {min_envs} were asked for. "
                    "Nothing is lost: call `recv` again, or close."
                )
            self._read()
        if self._failures:
            failures, self._failures = self._failures, []
            raise report(failures)
        return self._take()

    def _take(self) -> ReadyBatch:
        engine = self._engine
        ids = np.array(list(self._ready), dtype=np.intp)
        replies = list(self._ready.values())
        self._ready.clear()
        engine.take_in(replies)
        infos = engine.infos_of(replies, ids)
        if not self._pending:  # else rows written by the old schema could be read by the new one
            engine.learn_infos()
        return (ids, engine.observations.rows(ids), *engine.step_rows(ids), infos)

    def _wait(self, deadline: float | None) -> bool:
        """Waits until something can be read; False at the deadline."""
        poll = select.poll()
        workers = [w for w in self._engine.pool.workers if w.outstanding]
        for worker in workers:
            poll.register(worker.fd, select.POLLIN)
        return self._spin.wait(poll.poll, lambda: self._block(poll, workers, deadline))

    def _block(self, poll: select.poll, workers: list[Worker], deadline: float | None) -> bool:
        while True:
            left = _ALIVE_CHECK_SECONDS
            if deadline is not None:
                left = min(left, max(0.0, deadline - time.monotonic()))
            if poll.poll(int(left * 1000 + 0.999)):
                return True
            if deadline is not None and time.monotonic() >= deadline:
                return False
            if not all(worker.is_alive() for worker in workers):
                return True

    def _read(self) -> None:
        for worker in self._engine.pool.workers:
            if not worker.outstanding:
                continue
            try:
                while worker.outstanding and (worker.has_input() or not worker.is_alive()):
                    if (frame := worker.receive(0.0, "recv")) is not None:
                        self._finish(decode(frame))
            except WorkerDiedError as death:
                self._replace(worker, death)

    def _finish(self, reply: Reply) -> None:
        index = -1 if reply.env_index is None else reply.env_index
        self._pending.discard(index)
        self._reset_seeds.pop(index, None)
        if reply.failures:
            self._failures += reply.failures
            self._engine.failed.add(index)
        else:
            self._ready[index] = reply

    def _replace(self, worker: Worker, death: WorkerDiedError) -> None:
        """Lets a dead worker's environments come back: now, or when they are next sent a step."""
        engine = self._engine
        engine.pool.deaths[worker.index] = death
        reply = engine.restarts.revive(worker.index, "step")
        for index in worker.env_indices:
            part = Reply(env_index=index)
            if index in reply.observations:
                part.observations[index] = reply.observations[index]
            if index in reply.infos:
                part.infos[index] = reply.infos[index]
            if index in reply.raw_infos:
                part.raw_infos[index] = reply.raw_infos[index]
            if index in self._reset_seeds:
                seed = self._reset_seeds[index]
                engine.send_reset_rows(np.array([index]), [seed])
            elif index in self._pending or index in self._ready:
                self._pending.discard(index)
                self._ready[index] = part
            else:
                self._owed[index] = part

    def _check_ids(self, env_ids: EnvIds) -> npt.NDArray[np.intp]:
        ids: npt.NDArray[Any] = np.asarray(env_ids)
        num_envs = self._engine.num_envs
        if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
            raise TypeError(f"`env_ids` must be a sequence of integers, got {env_ids!r}.")
        if not ids.size:
            raise ValueError("`env_ids` is empty; name at least one environment.")
        listed = ids.tolist()
        if min(listed) < 0 or max(listed) >= num_envs:
            raise ValueError(f"`env_ids` must lie between 0 and {num_envs - 1}, got {listed}.")
        if len(set(listed)) < len(listed):
            raise EnvironmentPendingError(
                f"`env_ids` names an environment twice: {listed}.", "send"
            )
        busy = [i for i in listed if i in self._pending or i in self._ready]
        if busy:
            raise EnvironmentPendingError(
                f"Environments {busy} were sent something before and have not been received; "
                "call `recv` first.",
                "send",
            )
        return ids.astype(np.intp)

    def _misuse(self, min_envs: int) -> Exception:
        if min_envs < 1:
            return ValueError(f"`min_envs` must be at least 1, got {min_envs}.")
        pending = [*self._pending, *self._ready]
        state = f"only {sorted(pending)} are" if pending else "no environment is"
        return NothingPendingError(
            f"`recv` was to wait for {min_envs} environments, but {state} at work; call `send` or "
            f"`send_reset` first ({describe_envs(range(self._engine.num_envs))} exist).",
            "recv",
        )
