"""The worker processes of one vector environment."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from batchgym import frames, pickling
from batchgym.errors import WorkerDiedError, WorkerStartError, describe_envs
from batchgym.memory import SharedMemory
from batchgym.messages import Close, Reply, Start
from batchgym.output import OutputRelay
from batchgym.own_share import OwnShare
from batchgym.process import WorkerProcess, decode

_EXIT_SECONDS = 1.0

Worker = WorkerProcess | OwnShare


def encode(message: Any) -> bytes:
    """Returns the frame of a message to a worker."""
    return frames.message(pickling.dump_by_value(message))


def slices(num_envs: int, num_workers: int) -> list[range]:
    """Splits the environments into consecutive ranges whose lengths differ by at most one."""
    edges = [num_envs * worker // num_workers for worker in range(num_workers + 1)]
    return [range(start, stop) for start, stop in itertools.pairwise(edges)]


def request_all(requests: list[tuple[Worker, bytes]]) -> None:
    """Sends each worker its frame; all of them also if Ctrl-C comes in the middle."""
    left = iter(requests)
    try:
        for worker, frame in left:
            worker.request(frame)
    except KeyboardInterrupt:
        for worker, frame in left:  # or some workers would be a step ahead of others
            worker.request(frame)
        raise


class WorkerPool:
    """Sends to all workers, collects from all, and notices which of them die.

    Args:
        name: Class name of the vector environment, for the process list.
        starts: What each worker owns.
        memory: Shared memory.
        environ: Additional environment variables of the workers.
        owner_steps: Whether the first worker is this process itself.

    Raises:
        WorkerStartError: If a process cannot be started; none is left then.
    """

    def __init__(
        self,
        name: str,
        starts: Sequence[Start],
        memory: SharedMemory,
        environ: Mapping[str, str],
        owner_steps: bool = False,
    ) -> None:
        self._name = name
        self._starts = starts
        self._memory = memory
        self._environ = environ
        self._owner = os.getpid()
        self.workers: list[Worker] = []
        self.deaths: dict[int, WorkerDiedError] = {}
        self._answers: dict[int, Reply | None] = {}
        self._output = OutputRelay()
        try:
            for start in starts[int(owner_steps) :]:
                self.workers.append(self._start(start))
            if owner_steps:  # last, so that all make their environments at the same time
                self.workers.insert(0, OwnShare(starts[0], memory))
        except OSError as error:
            self.shut_down(0.0)
            raise WorkerStartError(
                f"Cannot start worker {len(self.workers)} of {len(starts)}: {error}. Use fewer "
                "workers (`num_workers=`), close other vector environments, or raise the limits "
                "(`ulimit -n`, `ulimit -u`)."
            ) from error
        except BaseException:
            self.shut_down(0.0)
            raise

    def answer(self, index: int, reply: Reply) -> None:
        """Takes a reply as the worker's answer in the next `gather`."""
        self._answers[index] = reply

    def replace(self, index: int) -> WorkerProcess:
        """Starts a fresh worker in place of one that has died."""
        self.workers[index].close()
        self.deaths.pop(index, None)
        worker = self._start(self._starts[index])
        self.workers[index] = worker
        return worker

    def started(self) -> None:
        """Says that all environments are made and set up."""
        self._output.started()

    def post(self, message: Any) -> None:
        """Sends every worker a message that is not answered."""
        data = encode(message)
        for worker in self.workers:
            worker.post(data)

    def request(self, data: Iterable[bytes]) -> None:
        """Sends each worker its frame, all of which are answered.

        A worker whose answer is already there, as it has just been replaced, is left out.
        """
        request_all(
            [
                (worker, frame)
                for worker, frame in zip(self.workers, data, strict=True)
                if worker.index not in self._answers
            ]
        )

    def gather(self, timeout: float | None, during: str) -> list[Reply]:
        """Waits for one answer of every worker; deaths are left in `deaths`.

        Returns:
            The answers that say more than `done`, in the order of the workers.

        Raises:
            multiprocessing.TimeoutError: After `timeout` seconds. Nothing is lost: what has come
                is kept, and the next call waits for the rest.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        answers = self._answers
        for worker in self.workers:
            index = worker.index
            if index in answers or index in self.deaths or not worker.outstanding:
                continue
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                frame = worker.receive(left, during)
            except WorkerDiedError as death:
                self.deaths[index] = death
                continue
            if frame is None:
                raise multiprocessing.TimeoutError(
                    f"The call to `{during}` has timed out after {timeout} second(s); "
                    f"worker {index} ({describe_envs(worker.env_indices)}) has not answered. "
                    "The call is still pending: wait again, or close."
                )
            answers[index] = decode(frame)
        return self.take_answers()

    def take_answers(self) -> list[Reply]:
        """Returns the answers that are there, as `gather` does."""
        answers = sorted(self._answers.items(), key=lambda answer: answer[0])
        self._answers.clear()
        return [reply for _, reply in answers if reply is not None]

    def close(self, deadline: float) -> list[Reply]:
        """Lets the workers close their environments, and ends those that take too long."""
        replies: list[Reply] = []
        frame = encode(Close())
        for worker in self.workers:
            if worker.index not in self.deaths:
                worker.post_now(frame)
        for worker in self.workers:
            replies += worker.join(deadline)
        self.shut_down(0.0)
        return replies

    def shut_down(self, grace: float) -> None:
        """Ends all workers and closes everything. In a fork of the owner: only closes.

        Args:
            grace: Seconds the workers have to end by themselves after their pipes are closed.
        """
        if os.getpid() == self._owner:
            deadline = time.monotonic() + grace
            for worker in self.workers:
                worker.hang_up()
            for worker in self.workers:
                worker.join(deadline)
            for worker in self.workers:
                worker.kill()
        for worker in self.workers:
            worker.close()
        self._output.close()
        self._memory.close()

    def _start(self, start: Start) -> WorkerProcess:
        with self._output.open_worker(start.worker) as (stdout, stderr):
            return WorkerProcess(
                f"Worker<{self._name}>-{start.worker}",
                start,
                self._memory.fd,
                stdout,
                stderr,
                self._environ,
            )


def shut_down_at_exit(pool: WorkerPool) -> None:
    """Ends a pool whose vector environment was dropped, or never closed before the exit."""
    pool.shut_down(_EXIT_SECONDS)
