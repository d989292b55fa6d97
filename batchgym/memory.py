"""Anonymous shared memory: a file without a name that goes with its last user."""

from __future__ import annotations

import mmap
import os
import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from batchgym.errors import WorkerStartError

_ALIGNMENT = 64


@dataclass(frozen=True)
class ArrayRequest:
    """Shape and dtype of an array that is to live in shared memory."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Size in bytes, rounded up so that the next array is aligned."""
        size = int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize
        return -(-size // _ALIGNMENT) * _ALIGNMENT


@dataclass(frozen=True)
class Region:
    """A page-aligned part of the shared file."""

    offset: int
    nbytes: int


def anonymous_file(name: str) -> int:
    """Opens a file that has no name (any more) and returns its descriptor."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    fd, path = tempfile.mkstemp(prefix=name)
    os.unlink(path)
    return fd


class SharedMemory:
    """A growing anonymous file, mapped by the owner and by those who are passed its descriptor.

    Args:
        fd: Descriptor of the file; None makes a new one.
    """

    def __init__(self, fd: int | None = None) -> None:
        self.fd = anonymous_file("batchgym") if fd is None else fd
        self._size = 0

    def extend(self, requests: list[ArrayRequest]) -> Region:
        """Adds a region that holds the requested arrays.

        The pages are reserved at once: too little memory is an error here, and not a SIGBUS at
        the first write.

        Raises:
            WorkerStartError: If the system has not that much shared memory.
        """
        wanted = sum(request.nbytes for request in requests)
        nbytes = max(1, -(-wanted // mmap.PAGESIZE)) * mmap.PAGESIZE
        region = Region(self._size, nbytes)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self.fd, region.offset, nbytes)
            else:
                os.pwrite(self.fd, bytes(nbytes), region.offset)
        except OSError as error:
            raise WorkerStartError(
                f"Cannot reserve {nbytes / 2**20:.1f} MiB of shared memory for observations, "
                f"actions and infos: {error.strerror}. Use fewer environments or smaller "
                "observations, or give the machine or container more memory "
                "(in Docker: `--shm-size`, `--memory`)."
            ) from error
        self._size += nbytes
        return region

    def arrays(self, region: Region, requests: list[ArrayRequest]) -> list[npt.NDArray[Any]]:
        """Maps a region and returns one array per request, in order."""
        block = mmap.mmap(self.fd, region.nbytes, offset=region.offset)
        arrays: list[npt.NDArray[Any]] = []
        offset = 0
        for request in requests:
            arrays.append(np.ndarray(request.shape, request.dtype, buffer=block, offset=offset))
            offset += request.nbytes
        return arrays

    def close(self) -> None:
        """Closes the descriptor. Mapped arrays stay valid until they are dropped."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
