"""The share of the environments that the owner steps itself, behind a worker's interface."""

from __future__ import annotations

import os
import time
from collections import deque
from typing import Any

from batchgym import frames, pickling
from batchgym.env_slice import EnvSlice
from batchgym.failures import capture
from batchgym.memory import SharedMemory
from batchgym.messages import Failure, Reply, Reset, Start, Step
from batchgym.process import decode
from batchgym.responder import Responder, encode_reply, make_envs

_CAUGHT = (Exception, SystemExit)  # Ctrl-C is for the owner, which this process is


class OwnShare:
    """Answers like a worker process, but works in the call that waits for its answer.

    The other workers have got their frames by then, so that all work at the same time.

    Args:
        start: What to own.
        memory: Where shared arrays live.

    Attributes:
        index: Its number among the workers.
        env_indices: Its environments.
        outstanding: How many answers are owed.
    """

    def __init__(self, start: Start, memory: SharedMemory) -> None:
        self.index = start.worker
        self.env_indices = range(start.first, start.first + len(start.env_fns))
        self.outstanding = 0
        self._owner = os.getpid()
        self._requests: deque[bytes] = deque()
        self._answers = bytearray()
        reply = Reply()
        envs = make_envs(start, reply, _CAUGHT)
        self._answers += encode_reply(reply)
        slice_ = EnvSlice(envs, start.first, start.autoreset_mode, start.infos, _CAUGHT)
        self._responder = Responder(slice_, memory)
        self._open = not reply.failures

    @property
    def fd(self) -> int:
        """Never polled: whatever was requested is answered in `receive`."""
        return -1

    def is_alive(self) -> bool:
        """Says whether the process runs: this one does."""
        return True

    def post(self, data: bytes) -> None:
        """Takes a frame that is not answered."""
        self._requests.append(data)

    def post_now(self, data: bytes) -> None:
        """Takes a frame, as `post`; here there is always room."""
        self._requests.append(data)

    def request(self, data: bytes, answers: int = 1) -> None:
        """Takes a frame that is answered."""
        self.outstanding += answers
        self._requests.append(data)

    def receive(self, timeout: float | None, during: str) -> frames.Frame | None:
        """Returns the next answer. No timeout can end what runs in this very thread."""
        del timeout, during
        while not self._answers:
            self._work()
        self.outstanding -= 1
        return frames.take_frame(self._answers)

    def receive_done(self) -> bool:
        """Works; True if the next answer is `done`. Anything else is left for `receive`."""
        while not self._answers:
            self._work()
        if self._answers != frames.DONE:
            return False
        self._answers.clear()
        self.outstanding -= 1
        return True

    def has_input(self) -> bool:
        """Says whether there is an answer, or work that leads to one."""
        return bool(self._answers or self._requests)

    def join(self, deadline: float) -> list[Reply]:
        """Does what is still asked for, until the deadline; returns what says more than `done`."""
        while self._open and self._requests and time.monotonic() < deadline:
            self._work()
        replies = []
        while self._answers and (frame := frames.take_frame(self._answers)) is not None:
            replies.append(decode(frame))
        return [reply for reply in replies if reply is not None]

    def hang_up(self) -> None:
        """Takes no more requests."""
        self._requests.clear()

    def kill(self) -> None:
        """Closes the environments; there is no process to end."""
        self.close()

    def close(self) -> None:
        """Closes the environments, unless this process is a fork of their owner."""
        if self._open and os.getpid() == self._owner:
            self._open = False
            self._responder.close()
            del self._responder  # and with it the mapped memory

    def _work(self) -> None:
        """Answers the first request."""
        request = self._requests.popleft()
        if request == frames.STEP:
            self._step()
            return
        frame = frames.take_frame(bytearray(request))
        if frame is None:
            raise ValueError(f"a frame of {len(request)} bytes that is not whole")
        answered: list[bytes] = []
        try:
            self._responder.answer(frame, answered.append)
        except KeyboardInterrupt as interrupt:
            answered += self._interrupted(pickling.load(frame.body), interrupt, len(answered))
            raise
        finally:
            for answer in answered:
                self._answers += answer

    def _step(self) -> None:
        try:
            self._answers += self._responder.step()
        except KeyboardInterrupt as interrupt:
            self._answers += self._interrupted(None, interrupt, 0)[0]
            raise

    def _interrupted(self, message: Any, interrupt: KeyboardInterrupt, done: int) -> list[bytes]:
        """Returns the answers that are owed after a Ctrl-C in the midst of an environment.

        The call is pending still and can be waited for; what it then tells is that the state of
        these environments is not known.
        """
        doing = "reset" if isinstance(message, Reset) else "step"
        if isinstance(message, (Step, Reset)) and message.one_by_one:
            return [
                encode_reply(Reply(env_index=index, failures=[capture(interrupt, index, doing)]))
                for index in (self.env_indices[slot] for slot in message.slots[done:])
            ]
        failures: list[Failure] = [capture(interrupt, index, doing) for index in self.env_indices]
        return [encode_reply(Reply(failures=failures))]
