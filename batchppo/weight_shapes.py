"""The shapes of a policy's weights, by which a model file is checked before anything is made."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from batchppo.actions import ActionDistribution
from batchppo.architecture import Architecture
from batchppo.observations import ObservationEncoder
from batchppo.recurrence import GATES


def weight_shapes(
    encoder: ObservationEncoder, distribution: ActionDistribution, architecture: Architecture
) -> dict[str, tuple[int, ...]]:
    """Returns the shape of every weight by the name under which it is stored."""
    outputs = distribution.parameter_size - distribution.free_size
    shapes: dict[str, tuple[int, ...]] = {}
    for part, widths in (("actor", (*architecture.pi, outputs)), ("critic", (*architecture.vf, 1))):
        size = architecture.features_size(encoder)
        if architecture.has_cell(part):
            front = (size, *architecture.front)
            shapes.update(_dense_shapes(f"{part}_front", front))
            shapes.update(_cell_shapes(f"{part}_cell", front[-1], architecture))
            size = architecture.recurrent_size
        shapes.update(_dense_shapes(part, (size, *widths)))
    for prefix in ("",) if architecture.share_features_extractor else ("", "critic_"):
        for name, shape in _features_shapes(encoder, architecture).items():
            shapes[f"{prefix}{name}"] = shape
    if distribution.free_size:
        latent = (architecture.latent_size(encoder),) if architecture.use_sde else ()
        shapes[architecture.std_name] = (*latent, distribution.free_size)
    return shapes


def _features_shapes(
    encoder: ObservationEncoder, architecture: Architecture
) -> dict[str, tuple[int, ...]]:
    if architecture.extractor is not None:
        own = architecture.extractor.weights
        return {f"extractor/{name}": shape for name, shape in own.items()}
    return {
        f"images/{name}/{layer}": weight
        for name, shape in encoder.images.items()
        for layer, weight in _nature_cnn_shapes(shape, architecture.features_dim).items()
    }


def _dense_shapes(prefix: str, sizes: Sequence[int]) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for i, (inputs, width) in enumerate(pairwise(sizes)):
        shapes[f"{prefix}/{i}/kernel"] = (inputs, width)
        shapes[f"{prefix}/{i}/bias"] = (width,)
    return shapes


def _cell_shapes(
    prefix: str, inputs: int, architecture: Architecture
) -> dict[str, tuple[int, ...]]:
    width = architecture.recurrent_size
    gates = GATES[str(architecture.cell)] * width
    return {
        f"{prefix}/kernel": (inputs, gates),
        f"{prefix}/recurrent_kernel": (width, gates),
        f"{prefix}/bias": (gates,),
    }


CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Filters, kernel and stride of Mnih et al. 2015 (Nature 518, 529), extended data table 1."""


def _nature_cnn_shapes(shape: tuple[int, ...], features: int) -> dict[str, tuple[int, ...]]:
    height, width, channels = shape
    shapes: dict[str, tuple[int, ...]] = {}
    for i, (filters, kernel, stride) in enumerate(CONVOLUTIONS):
        shapes[f"{i}/kernel"] = (kernel, kernel, channels, filters)
        shapes[f"{i}/bias"] = (filters,)
        height, width = ((size - kernel) // stride + 1 for size in (height, width))
        channels = filters
    dense = len(CONVOLUTIONS) + 1  # behind a layer that flattens
    shapes[f"{dense}/kernel"] = (height * width * channels, features)
    shapes[f"{dense}/bias"] = (features,)
    return shapes
