"""An agent and an environment that do not fit, told before the first step."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from batchppo_cli.errors import BadInput
from batchppo_cli.fitting import require_fitting
from batchppo_cli.space_text import brief
from gymnasium import spaces

VECTOR = spaces.Box(-1.0, 1.0, (4,), np.float32)
TWO = spaces.Discrete(2)


def check(own: tuple[Any, Any], other: tuple[Any, Any]) -> None:
    policy = SimpleNamespace(observation_space=own[0], action_space=own[1])
    require_fitting(policy, Path("model.zip"), "Other-v0", *other)


@pytest.mark.parametrize(
    ("own", "other"),
    [
        ((VECTOR, TWO), (VECTOR, TWO)),
        ((VECTOR, TWO), (spaces.Box(-9.0, 9.0, (4,), np.float32), TWO)),
        ((VECTOR, VECTOR), (VECTOR, spaces.Box(-2.0, 2.0, (4,), np.float32))),
        ((spaces.Dict(a=VECTOR), TWO), (spaces.Dict(a=spaces.Box(-9.0, 9.0, (4,))), TWO)),
    ],
)
def test_bounds_may_differ(own: tuple[Any, Any], other: tuple[Any, Any]) -> None:
    check(own, other)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            (spaces.Box(-1.0, 1.0, (3,), np.float32), TWO),
            "Other-v0 has observations Box 3 float32; model.zip was trained with observations "
            "Box 4 float32, and needs an environment with the same",
        ),
        ((spaces.Box(-1.0, 1.0, (4,), np.float64), TWO), "has observations Box 4 float64"),
        ((spaces.Dict(a=VECTOR), TWO), "has observations Dict (a: Box 4 float32)"),
        ((VECTOR, spaces.Discrete(3)), "has actions Discrete 3; model.zip was trained with"),
        ((VECTOR, VECTOR), "has actions Box 4 float32"),
        ((VECTOR, spaces.Discrete(2, start=1)), "has actions Discrete(2, start=1); model.zip"),
    ],
)
def test_other_spaces_are_told(other: tuple[Any, Any], message: str) -> None:
    with pytest.raises(BadInput) as caught:
        check((VECTOR, TWO), other)
    assert message in caught.value.format_message()


@pytest.mark.parametrize(
    ("space", "text"),
    [
        (spaces.Box(0, 255, (96, 96, 3), np.uint8), "Box 96x96x3 uint8"),
        (spaces.Box(0.0, 1.0, (), np.float32), "Box float32"),
        (spaces.MultiDiscrete([3, 4]), "MultiDiscrete 3x4"),
        (spaces.MultiBinary([2, 5]), "MultiBinary 2x5"),
        (spaces.Tuple([TWO]), "Tuple"),
    ],
)
def test_spaces_in_a_few_words(space: spaces.Space[Any], text: str) -> None:
    assert brief(space) == text
