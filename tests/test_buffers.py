"""Shared memory, and the arrays in it."""

import mmap
import os
import tempfile

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Graph, Text, Tuple

from batchgym.buffers import buffer_requests, map_buffers
from batchgym.errors import WorkerStartError
from batchgym.memory import ArrayRequest, SharedMemory, anonymous_file
from batchgym.spaces import is_array_space, leaf_spaces


def test_both_sides_see_the_same_bytes():
    memory = SharedMemory()
    requests = [ArrayRequest((3, 2), np.dtype(np.float32)), ArrayRequest((5,), np.dtype(np.bool_))]
    region = memory.extend(requests)
    ours = memory.arrays(region, requests)
    theirs = SharedMemory(os.dup(memory.fd))
    ours[0][:] = 7
    ours[1][2] = True
    seen = theirs.arrays(region, requests)
    assert seen[0].tolist() == [[7, 7]] * 3
    assert seen[1].tolist() == [False, False, True, False, False]
    memory.close()
    theirs.close()
    assert ours[0].sum() == 42  # mapped arrays outlive the descriptor


def test_regions_are_page_aligned_and_arrays_cache_aligned():
    memory = SharedMemory()
    first = memory.extend([ArrayRequest((1,), np.dtype(np.uint8))])
    second = memory.extend([ArrayRequest((mmap.PAGESIZE + 1,), np.dtype(np.uint8))])
    assert (first.offset, first.nbytes) == (0, mmap.PAGESIZE)
    assert (second.offset, second.nbytes) == (mmap.PAGESIZE, 2 * mmap.PAGESIZE)
    arrays = memory.arrays(second, [ArrayRequest((3,), np.dtype(np.uint8))] * 3)
    assert {array.ctypes.data % 64 for array in arrays} == {0}
    memory.close()


def test_empty_arrays():
    memory = SharedMemory()
    requests = [ArrayRequest((4, 0), np.dtype(np.float32))]
    assert memory.arrays(memory.extend(requests), requests)[0].shape == (4, 0)
    memory.close()


def test_memory_that_is_not_there(monkeypatch):
    memory = SharedMemory()

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(WorkerStartError, match=r"Cannot reserve 1.0 MiB.*No space left"):
        memory.extend([ArrayRequest((1 << 20,), np.dtype(np.uint8))])
    memory.close()


def test_without_memfd_nothing_stays_in_the_file_system(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.delattr(os, "posix_fallocate")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    fd = anonymous_file("test")
    memory = SharedMemory(fd)
    requests = [ArrayRequest((10,), np.dtype(np.int64))]
    array = memory.arrays(memory.extend(requests), requests)[0]
    array[:] = 3
    assert array.sum() == 30
    assert list(tmp_path.iterdir()) == []
    memory.close()
    memory.close()


def test_leaves():
    inner = Dict(b=Discrete(2), a=Text(3))
    space = Tuple([Box(0, 1, (2,)), inner])
    assert list(leaf_spaces(space)) == [space.spaces[0], *inner.spaces.values()]
    assert is_array_space(Box(0, 1, (2,), np.float16))
    assert not is_array_space(Text(3))
    assert not is_array_space(Graph(Box(0, 1, (1,)), None))


def test_buffers_of_a_mixed_space():
    memory = SharedMemory()
    arguments = (Dict(words=Text(4), x=Box(0, 1, (2,), np.float16)), Discrete(3), 5, True)
    region = memory.extend(buffer_requests(*arguments))
    buffers = map_buffers(memory, region, *arguments)
    words, x = buffers.observations
    assert words is None
    assert (x.shape, x.dtype) == ((5, 2), np.float16)
    assert [array.shape for array in buffers.actions] == [(5, 8)]
    assert buffers.rewards.dtype == np.float64
    assert buffers.rewards.shape == buffers.terminations.shape == buffers.truncations.shape == (5,)
    memory.close()


def test_actions_that_cannot_be_shared_have_no_buffer():
    memory = SharedMemory()
    arguments = (Discrete(2), Tuple([Discrete(2), Text(3)]), 2, True)
    buffers = map_buffers(memory, memory.extend(buffer_requests(*arguments)), *arguments)
    assert buffers.actions == []
    memory.close()
