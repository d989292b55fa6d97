"""Observations of every supported space as rows of numbers."""

import numpy as np
import pytest
from gymnasium import spaces

from batchppo.errors import SpaceError
from batchppo.observations import ObservationEncoder

MIXED = spaces.Dict(
    {
        "speed": spaces.Box(-1.0, 1.0, (2,), np.float32),
        "gear": spaces.Discrete(3, start=1),
        "lamps": spaces.MultiBinary(2),
        "keys": spaces.MultiDiscrete([2, 3]),
        "more": spaces.Dict({"height": spaces.Box(-1.0, 1.0, (), np.float64)}),
    }
)


def test_a_box_is_flattened():
    encoder = ObservationEncoder(spaces.Box(-1.0, 1.0, (2, 3), np.float32))
    batch = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    assert encoder.encode(batch)["vector"].tolist() == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    assert encoder.numeric.all()


def test_discrete_is_one_hot_from_its_start():
    encoder = ObservationEncoder(spaces.Discrete(3, start=5))
    assert encoder.encode(np.array([5, 7]))["vector"].tolist() == [[1, 0, 0], [0, 0, 1]]
    assert not encoder.numeric.any()


def test_multi_discrete_is_one_hot_per_component():
    encoder = ObservationEncoder(spaces.MultiDiscrete([2, 3], start=[0, 10]))
    assert encoder.encode(np.array([[1, 10], [0, 12]]))["vector"].tolist() == [
        [0, 1, 1, 0, 0],
        [1, 0, 0, 0, 1],
    ]


def test_a_dict_is_its_entries_side_by_side_in_the_space_s_order():
    encoder = ObservationEncoder(MIXED)
    batch = {
        "more": {"height": np.array([9.0])},
        "speed": np.array([[7.0, 8.0]]),
        "gear": np.array([2]),
        "keys": np.array([[1, 2]]),
        "lamps": np.array([[1, 0]]),
    }
    # Gymnasium sorts a plain dict's keys: gear, keys, lamps, more, speed.
    expected = [0, 1, 0, 0, 1, 0, 0, 1, 1, 0, 9.0, 7.0, 8.0]
    assert encoder.encode(batch)["vector"].tolist() == [expected]
    assert encoder.numeric.tolist() == [False] * 10 + [True] * 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8, np.int64, np.float16])
def test_any_number_type(dtype):
    encoder = ObservationEncoder(spaces.Box(0, 100, (2,), dtype))
    rows = encoder.encode(np.array([[1, 99]], dtype))["vector"]
    assert rows.dtype in (np.float32, np.float64)
    assert rows.tolist() == [[1, 99]]


@pytest.mark.parametrize(
    "space", [MIXED, spaces.Box(-1.0, 1.0, (2, 3)), spaces.Discrete(3), spaces.MultiBinary(4)]
)
def test_single_and_batched_are_told_apart(space):
    encoder = ObservationEncoder(space)
    space.seed(0)
    single = space.sample()
    batch, is_single = encoder.as_batch(single)
    assert is_single
    assert encoder.encode(batch)["vector"].shape == (1, encoder.size)
    again, is_single = encoder.as_batch(batch)
    assert not is_single
    assert np.array_equal(encoder.encode(again)["vector"], encoder.encode(batch)["vector"])


BOX = spaces.Box(-1.0, 1.0, (3,), np.float32)


@pytest.mark.parametrize(
    ("space", "observation", "match"),
    [
        (BOX, (np.zeros(3), {}), r"got a tuple.*\(observation, info\).*observation alone"),
        (BOX, np.zeros(4), r"shape \(4,\), expected \(3,\).*\(n, 3\)"),
        (BOX, np.zeros((2, 2, 3)), r"shape \(2, 2, 3\)"),
        (BOX, 1.0, r"shape \(\)"),
        (BOX, ["a", "b", "c"], "expected numbers"),
        (BOX, [[1, 2], [1]], "no array"),
        (BOX, None, "expected numbers"),
        (BOX, [0.0, np.nan, 0.0], "NaN or infinity"),
        (spaces.Discrete(3), 3, r"expected whole numbers in \[0, 3\)"),
        (spaces.Discrete(3, start=2), [2, 1], r"expected whole numbers in \[2, 5\)"),
        (MIXED, np.zeros(3), "expected a dict with the entry 'gear'"),
        (MIXED, {"speed": np.zeros(2)}, "expected a dict with the entry 'gear'"),
    ],
)
def test_what_does_not_fit_is_refused(space, observation, match):
    with pytest.raises(SpaceError, match=match):
        ObservationEncoder(space).as_batch(observation)


def test_entries_that_disagree_about_the_batch_axis_are_refused():
    encoder = ObservationEncoder(spaces.Dict(a=spaces.Discrete(2), b=spaces.Discrete(2)))
    with pytest.raises(SpaceError, match="same leading axis"):
        encoder.as_batch({"a": 1, "b": [0, 1]})


@pytest.mark.parametrize(
    "space",
    [spaces.Text(4), spaces.Sequence(BOX), spaces.Tuple([BOX, BOX]), spaces.Graph(BOX, BOX)],
)
def test_other_spaces_are_refused_with_a_way_out(space):
    with pytest.raises(SpaceError, match="not supported.*FlattenObservation"):
        ObservationEncoder(space)


PICTURE = spaces.Box(0, 255, (36, 40, 3), np.uint8)


def test_images_stay_images_where_asked_for():
    space = spaces.Dict(eye=PICTURE, more=spaces.Dict(eye=PICTURE), speed=BOX)
    encoder = ObservationEncoder(space, images=True)
    assert encoder.images == {"eye": (36, 40, 3), "more.eye": (36, 40, 3)}
    assert encoder.size == 3
    batch = {"eye": np.ones((2, 36, 40, 3), np.uint8), "speed": np.zeros((2, 3))}
    inputs = encoder.encode({**batch, "more": {"eye": batch["eye"]}})
    assert {name: array.shape for name, array in inputs.items()} == {
        "vector": (2, 3), "eye": (2, 36, 40, 3), "more.eye": (2, 36, 40, 3),
    }  # fmt: skip
    assert inputs["eye"].dtype == np.uint8
    assert ObservationEncoder(PICTURE, images=True).images == {"image": (36, 40, 3)}
    assert ObservationEncoder(space).size == 3 + 2 * 36 * 40 * 3


def test_the_channels_of_images_may_come_first():
    """Stacked frames do: [4, 84, 84]."""
    space = spaces.Dict(frames=spaces.Box(0, 255, (2, 36, 40), np.uint8), eye=PICTURE)
    encoder = ObservationEncoder(space, images=True)
    assert encoder.images == {"frames": (36, 40, 2), "eye": (36, 40, 3)}
    frames = np.random.default_rng(1).integers(256, size=(5, 2, 36, 40), dtype=np.uint8)
    eyes = np.zeros((5, 36, 40, 3), np.uint8)
    encoded = encoder.encode({"frames": frames, "eye": eyes})
    assert encoded["frames"].shape == (5, 36, 40, 2)
    assert encoded["frames"][3, 17, 30, 1] == frames[3, 1, 17, 30]
    assert encoded["eye"] is eyes
    flat = ObservationEncoder(space["frames"]).encode(frames)["vector"]
    np.testing.assert_array_equal(flat, frames.reshape(5, -1))


def test_an_action_mask_is_no_part_of_the_observation():
    space = spaces.Dict(action_mask=spaces.MultiBinary(4), speed=BOX)
    encoder = ObservationEncoder(space, mask_size=4)
    inputs = encoder.encode({"action_mask": np.array([[1, 0, 0, 1]]), "speed": np.zeros((1, 3))})
    assert inputs["action_mask"].tolist() == [[True, False, False, True]]
    assert inputs["vector"].shape == (1, 3)
    assert ObservationEncoder(space).size == 7
    with pytest.raises(SpaceError, match="'action_mask' has 4 entries, expected 5"):
        ObservationEncoder(space, mask_size=5)
