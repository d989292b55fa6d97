"""Which policy suits an environment, where nobody says."""

import contextlib
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from batchppo.errors import SpaceError
from batchppo.policies import policy_encoder

from .space_text import brief

_LARGE = 3000  # numbers: more than any vector of measurements has


def suitable_policy(observations: Space[Any], actions: Space[Any]) -> str:
    """Return the policy that reads such observations best.

    Images are for convolutions, unless they are too small for them; then they are flattened, as
    everything else is.

    Args:
        observations: Observation space of one environment.
        actions: Its action space.
    """
    for policy in ("CnnPolicy", "MultiInputPolicy"):
        with contextlib.suppress(SpaceError):
            policy_encoder(policy, observations, actions)
            return policy
    return "MlpPolicy"


def remark_on(policy: str, observations: Space[Any]) -> str | None:
    """Return what somebody may want to know about this choice, or None.

    A policy that flattens large arrays of several axes learns slowly, if at all.
    """
    shape = observations.shape if isinstance(observations, spaces.Box) else None
    if policy != "MlpPolicy" or not shape or len(shape) < 3 or np.prod(shape) < _LARGE:
        return None
    return (
        f"Observations ({brief(observations)}) are flattened for MlpPolicy. Convolutions read "
        "uint8 images of three axes; wrappers such as AtariPreprocessing, ResizeObservation and "
        "FrameStackObservation make them."
    )
