"""How a worker process is started: a fresh interpreter, never a fork."""

from __future__ import annotations

import marshal
import os
import subprocess
import sys
from collections.abc import Mapping

from batchgym.memory import anonymous_file

# Runs before the worker has a usable `sys.path`, hence built-in modules only. The path comes first,
# since a package may be found through the owner's path alone.
_SOURCE = """
import marshal, os, sys
os.environ["BATCHGYM_WORKER"] = str(os.getpid())
if os.path.exists("/proc/self/comm"):
    with open("/proc/self/comm", "w") as name:
        name.write("batchgym-worker")
with open(int(sys.argv[2]), "rb") as start:
    sys.path[:] = marshal.load(start)
    payload = start.read()
from batchgym.worker import main
main(payload, *map(int, sys.argv[3:]))
"""

_SINGLE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "BLIS_NUM_THREADS",
)
_MPI_PREFIXES = ("OMPI_", "PMI_")  # else `from mpi4py import MPI` takes a worker for a rank


def worker_environ(extra: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment variables of a worker.

    One thread per numerical library unless the user chose otherwise (the workers are the
    parallelism), and no GPU: the agent's memory is not for environments to take.
    """
    environ = {k: v for k, v in os.environ.items() if not k.startswith(_MPI_PREFIXES)}
    for name in _SINGLE_THREAD:
        environ.setdefault(name, "1")
    environ["CUDA_VISIBLE_DEVICES"] = ""
    environ.update(extra)
    return environ


def start_program(
    name: str,
    payload: bytes,
    fds: tuple[int, ...],
    stdout: int,
    stderr: int,
    environ: Mapping[str, str],
) -> subprocess.Popen[bytes]:
    """Starts `batchgym.worker.main` in a new interpreter.

    Args:
        name: Shown in the process list.
        payload: Pickled `Start`; passed in a file without a name, so that starting never waits.
        fds: Descriptors for `main`, in its order.
        stdout: Descriptor for the worker's output.
        stderr: Descriptor for the worker's errors.
        environ: Additional environment variables.
    """
    start_fd = anonymous_file("batchgym-start")
    try:
        # fdopen with closefd=False: the descriptor itself goes to the worker.
        with os.fdopen(start_fd, "wb", closefd=False) as stream:
            stream.write(marshal.dumps([os.fspath(entry) for entry in sys.path]))
            stream.write(payload)
        os.lseek(start_fd, 0, os.SEEK_SET)
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        arguments = [str(number) for number in (start_fd, *fds, os.getpid())]
        return subprocess.Popen(
            [sys.executable, *flags, "-c", _SOURCE, name, *arguments],
            pass_fds=(start_fd, *fds),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=worker_environ(environ),
            # A group of its own: Ctrl-C in a terminal is for the owner, and what an environment
            # starts can be ended together with the worker.
            process_group=0,
        )
    finally:
        os.close(start_fd)
