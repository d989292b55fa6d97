"""What `logger.record` takes beside numbers, texts and arrays: for TensorBoard alone."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

HyperparameterValue = bool | int | float | str


@runtime_checkable
class Summary(Protocol):
    """A value that writes itself into TensorBoard's default writer."""

    def write(self, key: str) -> None:
        """Writes itself under `key`, at the writer's step."""


class Image:
    """A picture.

    Args:
        image: uint8 from 0 to 255, or floats from 0 to 1.
        dataformats: the order of its axes, such as "HWC", "CHW" or "HW".
    """

    def __init__(self, image: Any, dataformats: str = "HWC") -> None:
        axes = dataformats.upper()
        pixels = np.asarray(image)
        if sorted(axes) not in (["H", "W"], ["C", "H", "W"]) or pixels.ndim != len(axes):
            raise ValueError(
                f"an image of shape {pixels.shape} does not fit dataformats {dataformats!r}; "
                f"expected an order of H, W and C such as 'HWC', with as many axes"
            )
        if "C" not in axes:
            pixels, axes = pixels[..., None], f"{axes}C"
        self.pixels: NDArray[Any] = pixels.transpose([axes.index(axis) for axis in "HWC"])

    def write(self, key: str) -> None:
        """Writes the picture."""
        import tensorflow as tf

        tf.summary.image(key, self.pixels[None])


class Figure:
    """A figure of matplotlib.

    Args:
        figure: the figure.
        close: whether to close it once it is drawn.
    """

    def __init__(self, figure: Any, close: bool = False) -> None:
        figure.canvas.draw()
        self.pixels = np.array(figure.canvas.buffer_rgba())
        if close:
            import matplotlib.pyplot as plt

            plt.close(figure)

    def write(self, key: str) -> None:
        """Writes the figure as a picture."""
        Image(self.pixels).write(key)


class Video:
    """Frames that TensorBoard plays.

    Args:
        frames: uint8, shape [T, H, W, 3], or [1, T, 3, H, W] as Stable-Baselines3 has them.
        fps: frames per second.
    """

    def __init__(self, frames: Any, fps: float = 30) -> None:
        pixels = np.asarray(frames)
        if pixels.ndim == 5 and len(pixels) == 1:
            pixels = pixels[0].transpose(0, 2, 3, 1)
        if pixels.ndim != 4 or pixels.shape[-1] != 3 or pixels.dtype != np.uint8:
            raise ValueError(
                f"a video of {pixels.dtype} and shape {pixels.shape}; expected uint8 of shape "
                f"[T, H, W, 3], as np.stack of env.render() gives"
            )
        self.frames: NDArray[np.uint8] = pixels
        self.fps = fps

    def write(self, key: str) -> None:
        """Writes the frames as an animated GIF, which TensorBoard shows among the images."""
        import tensorflow as tf
        from PIL import Image as Pillow
        from tensorboard.plugins.image.metadata import create_summary_metadata

        first, *rest = (Pillow.fromarray(frame) for frame in self.frames)
        gif = io.BytesIO()
        first.save(gif, "GIF", save_all=True, append_images=rest, duration=1000 / self.fps, loop=0)
        _, height, width, _ = self.frames.shape
        content = tf.constant([str(width).encode(), str(height).encode(), gif.getvalue()])
        metadata = create_summary_metadata(display_name=None, description=None)
        tf.summary.write(key, content, metadata=metadata)


class HParam:
    """Hyperparameters and the metrics by which TensorBoard's HPARAMS page compares runs.

    Args:
        hparam_dict: the hyperparameters; what is no number, text or bool is shown as text.
        metric_dict: the metrics by key, such as "rollout/ep_rew_mean"; values are not used, since
            the page shows what is logged under these keys.
    """

    def __init__(self, hparam_dict: Mapping[str, Any], metric_dict: Mapping[str, float]) -> None:
        self.hparams: dict[str, HyperparameterValue] = {
            name: value if isinstance(value, bool | int | float | str) else str(value)
            for name, value in hparam_dict.items()
        }
        if not metric_dict:
            raise ValueError("metric_dict must name at least one metric to compare runs by")
        self.metrics = list(metric_dict)

    def write(self, key: str) -> None:
        """Writes the hyperparameters; a run has one set of them, whatever the key."""
        del key
        from tensorboard.plugins.hparams import api

        api.hparams_config(
            hparams=[api.HParam(name) for name in self.hparams],
            metrics=[api.Metric(name) for name in self.metrics],
        )
        api.hparams(self.hparams)
