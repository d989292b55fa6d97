"""Whether an agent can act in an environment, before it tries."""

from pathlib import Path
from typing import Any

from gymnasium import Space, spaces
from gymnasium.spaces.utils import is_space_dtype_shape_equiv

import batchppo

from .errors import BadInput
from .space_text import brief


def require_fitting(
    policy: "batchppo.Policy",
    model: Path,
    env_id: str,
    observations: Space[Any],
    actions: Space[Any],
) -> None:
    """Raise BadInput unless the environment has the spaces that the agent was trained on.

    Bounds may differ: a heavier pendulum is a test of an agent, not a mistake.

    Args:
        policy: What acts.
        model: The file that it comes from.
        env_id: The environment.
        observations: Its observation space, of one environment.
        actions: Its action space, of one environment.
    """
    pairs = {
        "observations": (policy.observation_space, observations),
        "actions": (policy.action_space, actions),
    }
    for what, (own, other) in pairs.items():
        if not _is_alike(own, other):
            theirs, ours = brief(other), brief(own)
            if theirs == ours:  # what sets them apart is left out of the short form
                theirs, ours = str(other), str(own)
            raise BadInput(
                f"{env_id} has {what} {theirs}; {model} was trained with {what} {ours}, and needs "
                "an environment with the same"
            )


def _is_alike(own: Space[Any], other: Space[Any]) -> bool:
    if own == other:
        return True
    is_box = isinstance(own, (spaces.Box, spaces.Dict)) and type(own) is type(other)
    return is_box and is_space_dtype_shape_equiv(own, other)
