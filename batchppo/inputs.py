"""What a policy network reads: arrays by name, with one leading shape.

`vector` holds all numbers side by side, normalized where that applies; `action_mask` says which
choices are allowed; every image has a name of its own; `episode_start` tells policies with memory
where to forget, and the states say what they remember. Most policies have `vector` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Inputs: TypeAlias = dict[str, NDArray[Any]]

VECTOR = "vector"
ACTION_MASK = "action_mask"
EPISODE_START = "episode_start"
ACTOR_STATE = "actor_state"
CRITIC_STATE = "critic_state"


def map_inputs(function: Callable[..., NDArray[Any]], first: Inputs, *others: Inputs) -> Inputs:
    """Returns `function` of the arrays of each name."""
    return {name: function(array, *(o[name] for o in others)) for name, array in first.items()}


def concatenate(parts: Sequence[Inputs]) -> Inputs:
    """Returns the rows of all parts, of which there must be at least one."""
    first, *others = parts
    return map_inputs(lambda *arrays: np.concatenate(arrays), first, *others)


def count_rows(inputs: Inputs) -> int:
    """Returns the length of the leading axis."""
    return len(next(iter(inputs.values())))
