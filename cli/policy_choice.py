"""Which policy suits an environment, where nobody says."""

import contextlib
from typing import Any

from gymnasium import Space

from batchppo.errors import SpaceError
from batchppo.policies import policy_encoder


def suitable_policy(observations: Space[Any], actions: Space[Any]) -> str:
    """Return the policy that reads such observations best.

    Images are for convolutions, unless they are too small for them or have their channels first;
    then they are flattened, as everything else is.

    Args:
        observations: Observation space of one environment.
        actions: Its action space.
    """
    for policy in ("CnnPolicy", "MultiInputPolicy"):
        with contextlib.suppress(SpaceError):
            policy_encoder(policy, observations, actions)
            return policy
    return "MlpPolicy"
