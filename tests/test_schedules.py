"""Schedules: what they accept, where they end and that they survive JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchppo.schedules import (
    CallableSchedule,
    ConstantSchedule,
    LinearSchedule,
    MissingSchedule,
    PiecewiseSchedule,
    as_schedule,
    schedule_from_json,
    schedule_to_json,
)


@pytest.mark.parametrize(
    ("given_value", "expected"),
    [
        (0.5, ConstantSchedule(0.5)),
        (1, ConstantSchedule(1.0)),
        ("3e-4", ConstantSchedule(3e-4)),
        ("constant:3e-4", ConstantSchedule(3e-4)),
        ("linear:1e-3", LinearSchedule(1e-3)),
        ("linear:1e-3:1e-5", LinearSchedule(1e-3, 1e-5)),
        ("linear:1e-3:1e-5:0.5", LinearSchedule(1e-3, 1e-5, 0.5)),
        ("piecewise:0=1,0.5=0.1", PiecewiseSchedule(((0.0, 1.0), (0.5, 0.1)))),
    ],
)
def test_what_may_be_given(given_value, expected):
    assert as_schedule(given_value, "learning_rate") == expected


def test_linear_values():
    schedule = LinearSchedule(1.0, 0.2, end_fraction=0.5)
    values = [schedule(remaining) for remaining in (1.0, 0.75, 0.5, 0.1, 0.0)]
    assert values == pytest.approx([1.0, 0.6, 0.2, 0.2, 0.2])


def test_piecewise_values():
    schedule = PiecewiseSchedule(((0.0, 1.0), (0.25, 0.5), (0.5, 0.1)))
    values = [schedule(remaining) for remaining in (1.0, 0.76, 0.75, 0.5, 0.0)]
    assert values == [1.0, 1.0, 0.5, 0.1, 0.1]


@pytest.mark.parametrize("schedule", ["linear:1e-3", "piecewise:0=1,0.5=0.1", lambda p: p])
def test_no_schedule_leaves_its_end_value(schedule):
    schedule = as_schedule(schedule, "x")
    assert schedule(-0.1) == schedule(0.0)
    assert schedule(1.1) == schedule(1.0)


@pytest.mark.parametrize(
    "wrong",
    ["fast", "linear:", "linear:a", "linear:1:2:3:4", "piecewise:0.5=1", "piecewise:0=1,0=2",
     "linear:1:0:0", float("nan"), float("inf")],
)  # fmt: skip
def test_what_is_no_schedule_is_refused_by_name(wrong):
    with pytest.raises(ValueError, match="learning_rate"):
        as_schedule(wrong, "learning_rate")


def test_another_kind_of_object_is_a_type_error():
    with pytest.raises(TypeError, match="clip_range must be a number.*got \\[1\\]"):
        as_schedule([1], "clip_range")


NUMBERS = st.floats(-1e6, 1e6)
SCHEDULES = st.one_of(
    st.builds(ConstantSchedule, NUMBERS),
    st.builds(LinearSchedule, NUMBERS, NUMBERS, st.floats(0.01, 1.0)),
    st.builds(
        lambda values: PiecewiseSchedule(tuple((i / 10, value) for i, value in enumerate(values))),
        st.lists(NUMBERS, min_size=1, max_size=5),
    ),
)


@given(SCHEDULES, st.floats(0, 1))
def test_json_and_back(schedule, remaining):
    again = schedule_from_json(json.loads(json.dumps(schedule_to_json(schedule, "x"))))
    assert again == schedule
    assert again(remaining) == schedule(remaining)
    least, greatest = schedule.bounds()
    assert least - 1e-6 <= schedule(remaining) <= greatest + 1e-6


def test_a_function_becomes_a_marker_that_says_what_to_do():
    document = schedule_to_json(CallableSchedule(lambda p: p), "clip_range")
    marker = schedule_from_json(document)
    assert marker == MissingSchedule("clip_range")
    with pytest.raises(ValueError, match="custom_objects=\\{'clip_range': function\\}"):
        marker(0.5)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="unknown schedule"):
        schedule_from_json({"schedule": "os.system", "value": 1})
