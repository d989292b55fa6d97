"""Where TensorFlow computes."""

import pytest
import tensorflow as tf

from batchppo.device import resolve_device


@pytest.fixture
def grown(monkeypatch):
    """Pretends that there is one GPU; the list of those whose memory may grow."""
    grown = []
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [f"{kind} 0"])
    monkeypatch.setattr(
        tf.config.experimental, "set_memory_growth", lambda gpu, grows: grown.append((gpu, grows))
    )
    return grown


def test_dense_networks_stay_on_the_cpu_where_there_is_a_gpu(grown):
    assert resolve_device("auto") == "/CPU:0"
    assert grown == []


def test_convolutions_go_to_a_gpu_whose_memory_is_taken_as_needed(grown):
    assert resolve_device("auto", prefer_gpu=True) == "/GPU:0"
    assert grown == [("GPU 0", True)]


def test_a_device_that_is_named_is_taken(grown):
    assert resolve_device("cpu", prefer_gpu=True) == "/CPU:0"
    assert resolve_device("cuda") == resolve_device("gpu:0") == "/GPU:0"
    with pytest.raises(ValueError, match="asks for GPU 1, but TensorFlow sees 1"):
        resolve_device("cuda:1")


def test_without_a_gpu_all_is_on_the_cpu(monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    assert resolve_device("auto", prefer_gpu=True) == "/CPU:0"
