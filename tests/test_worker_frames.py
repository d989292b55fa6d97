"""Frames: what passes through the pipes."""

import os
import threading
import time

import pytest

from batchgym import frames
from batchgym.frames import Channel
from batchgym.spin import Spin


@pytest.fixture(params=[2, 0], ids=["spin", "block"])
def ends(request):
    """The owner's and the worker's end of two pipes."""
    command_r, command_w = os.pipe()
    reply_r, reply_w = os.pipe()
    os.set_blocking(command_w, False)
    owner = Channel(reply_r, command_w, Spin(request.param), drain_while_writing=True)
    worker = Channel(command_r, reply_w, Spin(request.param))
    yield owner, worker
    for fd in (command_r, command_w, reply_r, reply_w):
        try:
            os.close(fd)
        except OSError:
            continue


def test_frames_arrive_in_order(ends):
    owner, worker = ends
    owner.send(frames.STEP)
    assert worker.receive_just(frames.STEP)
    owner.send(frames.message(b"abc") + frames.STEP + frames.message(b""))
    assert worker.receive().body == b"abc"
    assert worker.receive().code == frames.STEP[0]
    assert worker.receive().body == b""
    worker.send(frames.ready(70_000) + frames.DONE)
    assert owner.receive().number == 70_000
    assert owner.receive().code == frames.DONE[0]


@pytest.mark.parametrize("cut", range(1, 12))
def test_frames_that_arrive_in_pieces(ends, cut):
    owner, worker = ends
    data = frames.message(b"abc")
    os.write(owner.write_fd, data[:cut])
    if cut < len(data):
        assert worker.receive(timeout=0.0) is None
    os.write(owner.write_fd, data[cut:] + frames.STEP)
    assert worker.receive(timeout=1.0).body == b"abc"
    assert worker.receive(timeout=1.0).code == frames.STEP[0]


def test_timeout(ends):
    owner, _ = ends
    start = time.monotonic()
    assert owner.receive(timeout=0.05) is None
    assert time.monotonic() - start >= 0.05
    assert not owner.has_input()


def test_end_of_the_pipe(ends):
    owner, worker = ends
    os.close(owner.write_fd)
    with pytest.raises(EOFError):
        worker.receive()


def test_dead_side_whose_pipe_stays_open(ends):
    owner, _ = ends
    with pytest.raises(EOFError):
        owner.receive(is_alive=lambda: False)


@pytest.mark.parametrize("repeat", range(5))
def test_two_that_write_much_do_not_wait_for_each_other(ends, repeat):
    owner, worker = ends
    body = bytes(1_000_000)

    def answer():
        worker.send(frames.message(body))
        received.append(worker.receive())

    received = []
    thread = threading.Thread(target=answer)
    thread.start()
    owner.send(frames.message(body))
    assert owner.receive().body == body
    thread.join(timeout=20)
    assert received[0].body == body


def test_try_send_gives_up_on_a_full_pipe(ends):
    owner, _ = ends
    assert owner.try_send(b"x")
    while owner.try_send(bytes(4096)):
        continue
    assert not owner.try_send(bytes(4096))
