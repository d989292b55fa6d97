"""Spaces survive JSON, and nothing else is taken for a space."""

import json

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from batchppo.errors import SpaceError
from batchppo.space_json import space_from_json, space_to_json

SPACES = [
    spaces.Box(-1.0, 1.0, (3,), np.float32),
    spaces.Box(-np.inf, np.inf, (2, 2), np.float64),
    spaces.Box(np.array([-1.5, -np.inf], np.float32), np.array([np.inf, 7.25], np.float32)),
    spaces.Box(0, 255, (84, 84, 4), np.uint8),
    spaces.Box(-1.0, 1.0, (), np.float32),
    spaces.Box(np.iinfo(np.int64).min, np.iinfo(np.int64).max, (1,), np.int64),
    spaces.Discrete(5),
    spaces.Discrete(5, start=-2),
    spaces.MultiDiscrete([2, 3]),
    spaces.MultiDiscrete([[2, 3], [4, 5]], start=[[0, 1], [2, 3]]),
    spaces.MultiBinary(4),
    spaces.MultiBinary([2, 3]),
    spaces.Dict([("z", spaces.Discrete(2)), ("a", spaces.Dict(b=spaces.MultiBinary(3)))]),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_json_and_back(space):
    again = space_from_json(json.loads(json.dumps(space_to_json(space), allow_nan=False)))
    assert again == space
    assert again.dtype == space.dtype
    if isinstance(space, spaces.Dict):
        assert list(again.spaces) == list(space.spaces)


def test_an_image_space_is_short():
    assert len(json.dumps(space_to_json(SPACES[3]))) < 200


@given(st.integers(-(2**62), 2**62), st.integers(0, 2**62))
def test_integers_of_any_size_are_exact(low, width):
    space = spaces.Box(low, low + min(width, 2**62 - low), (1,), np.int64)
    assert space_from_json(json.loads(json.dumps(space_to_json(space)))) == space


def test_what_cannot_be_stored_is_refused():
    with pytest.raises(SpaceError, match="cannot be stored"):
        space_to_json(spaces.Text(3))


@pytest.mark.parametrize(
    "document",
    [{}, {"type": "os.system"}, {"type": "Discrete"}, {"type": "Discrete", "n": -1, "start": 0},
     {"type": "Box", "low": [1, 2], "high": 3, "shape": [3], "dtype": "float32"},
     {"type": "Box", "low": 0, "high": 1, "shape": [1], "dtype": "nonsense"},
     {"type": "Dict", "spaces": 3}],
)  # fmt: skip
def test_what_describes_no_space_is_refused(document):
    with pytest.raises(SpaceError, match="does not describe a space"):
        space_from_json(document)
