"""Which observations each kind of policy reads."""

from __future__ import annotations

from typing import Any

from gymnasium import Space, spaces

from batchppo.errors import SpaceError
from batchppo.masks import mask_size
from batchppo.observations import ObservationEncoder, is_image
from batchppo.policy_names import split_policy

_MIN_PIXELS = 36  # what the three convolutions leave at least one number of


def policy_encoder(
    policy: str, space: Space[Any], action_space: Space[Any], own_extractor: bool = False
) -> ObservationEncoder:
    """Returns how a policy reads observations of a space.

    Mlp policies flatten everything; Cnn policies read one image; MultiInput policies read a Dict,
    images in it as images. An `action_mask` in a Dict masks the actions, where they are choices.

    Args:
        policy: the policy's name.
        space: of one observation.
        action_space: of one action.
        own_extractor: whether a user's layer reads the images, of whatever size.

    Raises:
        ValueError: an unknown policy.
        SpaceError: the policy cannot read the space.
    """
    reading, _ = split_policy(policy)
    if reading == "Cnn":
        _require_image(space)
    if reading == "MultiInput" and not isinstance(space, spaces.Dict):
        raise SpaceError(
            f"{policy} reads a Dict of observations, got {space}; use MlpPolicy, or "
            f"CnnPolicy for images"
        )
    encoder = ObservationEncoder(space, images=reading != "Mlp", mask_size=mask_size(action_space))
    for name, (height, width, _) in encoder.images.items():
        if min(height, width) < _MIN_PIXELS and not own_extractor:
            raise SpaceError(
                f"image '{name}' has {height} x {width} pixels, the convolutions need "
                f"{_MIN_PIXELS} x {_MIN_PIXELS}; enlarge it with gymnasium.wrappers."
                f"ResizeObservation, or use MlpPolicy"
            )
    if encoder.size == 0 and not encoder.images:
        raise SpaceError(f"{space} holds nothing to observe")
    return encoder


def _require_image(space: Space[Any]) -> None:
    if not is_image(space):
        raise SpaceError(
            f"CnnPolicy reads images, a Box of uint8 with shape (height, width, channels) or "
            f"(channels, height, width); got {space}. Use MlpPolicy for vectors and "
            f"MultiInputPolicy for a Dict"
        )
