"""Where TensorFlow computes."""

from __future__ import annotations

import re

import tensorflow as tf


def resolve_device(device: str, prefer_gpu: bool = False) -> str:
    """Returns TensorFlow's name of a device.

    Args:
        device: "cpu", "gpu" or "cuda", or one of several as "cuda:1"; or "auto", which is the CPU
            unless a GPU is both preferred and present.
        prefer_gpu: whether a GPU would be faster, as it is for convolutions; for dense networks
            of usual size the CPU is.

    Raises:
        ValueError: an unknown name, or a GPU that TensorFlow does not see.
    """
    device = str(device)  # torch.device("cpu") too
    if device == "auto":
        device = "gpu" if prefer_gpu and tf.config.list_physical_devices("GPU") else "cpu"
    if device == "cpu":
        return "/CPU:0"
    match = re.fullmatch(r"(?:cuda|gpu)(?::(\d+))?", device)
    if match is None:
        raise ValueError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:<index>', got {device!r}")
    index = int(match[1] or 0)
    gpus = tf.config.list_physical_devices("GPU")
    if index >= len(gpus):
        raise ValueError(
            f"device={device!r} asks for GPU {index}, but TensorFlow sees {len(gpus)}; use 'cpu', "
            f"or install tensorflow[and-cuda] and a driver that fits"
        )
    # Without this, TensorFlow takes all memory of the GPU at once.
    tf.config.experimental.set_memory_growth(gpus[index], True)
    return f"/GPU:{index}"
