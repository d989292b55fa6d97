"""Candidates as seen by the benchmark: processes that work for a while when told to."""

import contextlib
import json
import os
import subprocess
import time
from pathlib import Path

import psutil

_SCRIPT = Path(__file__).with_name("ppo_candidate.py")


class CandidateError(RuntimeError):
    """A candidate ended or could not begin; the message has its last words."""


class CandidateProcess:
    """A library with a setting, in a process of its own; a context manager.

    Args:
        name: which library, and how its environments live, as in `ppo_settings.PEERS`.
        setting: what it trains.
        python: the interpreter that has the library.
        log: where its standard error goes.

    Attributes:
        name: the same.
        start_seconds: from the command to an agent that is ready to train.
        first_seconds: of the first iteration, which compiles.
        threads: how many threads PyTorch uses; None where it does not compute.
        idle_seconds: processor time taken while others worked.
    """

    def __init__(self, name, setting, python, log):
        self.name = name
        self.threads = None
        self.idle_seconds = 0.0
        self.first_seconds = 0.0
        self._log = Path(log)
        self._unit_seconds = {}
        began = time.perf_counter()
        with self._log.open("w") as errors:
            self._process = subprocess.Popen(
                [python, _SCRIPT, name, json.dumps(setting.to_json())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        try:
            self._answer()
        except CandidateError:
            self.close()
            raise
        self.start_seconds = time.perf_counter() - began

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the process, and waits for it."""
        self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def do(self, work, count):
        """Does that much work; returns how much was done, and the seconds that it took."""
        try:
            self._process.stdin.write(f"{work} {count}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended: reading its answer tells why
        answer = self._answer()
        return answer["done"], answer["seconds"]

    def warm_up(self, works):
        """Does each kind of work for the first times; chooses PyTorch's number of threads."""
        _, self.first_seconds = self.do("train", 1)
        if self.name.startswith(("sb3", "contrib")):
            self._choose_threads()
        for work in works:
            count, seconds = 1, 0.0
            self.do(work, 1)
            while seconds < 0.05:  # long enough to tell how much fits into a slice
                _, seconds = self.do(work, count)
                self._unit_seconds[work] = seconds / count
                count *= 4

    def rate(self, work, seconds):
        """Works for about so many seconds, at least one unit; returns work per second."""
        done, took = self.do(work, max(1, round(seconds / self._unit_seconds[work])))
        return done / took

    def cpu_seconds(self):
        """Returns the processor time of the process and its workers so far."""
        return sum(sum(process.cpu_times()[:2]) for process in self._processes())

    def memory(self):
        """Returns the resident memory of the process and its workers, in MB."""
        return sum(process.memory_info().rss for process in self._processes()) / 2**20

    def _processes(self):
        found = psutil.Process(self._process.pid)
        return [found, *found.children(recursive=True)]

    def _choose_threads(self):
        """Takes the faster of one thread and one per core: small networks want the former."""
        seconds = {}
        iterations = 1 if self.first_seconds > 2 else 3
        for threads in (1, len(os.sched_getaffinity(0))):
            self.do("threads", threads)
            _, seconds[threads] = self.do("train", iterations)
        self.threads = min(seconds, key=seconds.get)
        self.do("threads", self.threads)

    def _answer(self):
        line = self._process.stdout.readline()
        if line:
            return json.loads(line)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        last = "\n".join(self._log.read_text(errors="replace").splitlines()[-5:])
        raise CandidateError(f"{self.name} ended with exit code {self._process.returncode}: {last}")
