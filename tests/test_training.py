"""How one call of learn divides its steps."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from batchppo.logger import Logger
from batchppo.training import Training


def training(goal, start=0):
    return Training(start=start, goal=goal, callback=None, logger=Logger(None, []), log_interval=1)


def lengths(total, n_steps, num_envs):
    run, done, result = training(total), 0, []
    while done < total:
        result.append(run.next_steps(done, n_steps, num_envs))
        done += result[-1] * num_envs
    return result, done


@pytest.mark.parametrize(
    ("total", "expected"),
    [(80, [10]), (160, [10, 10]), (240, [10, 10, 10]), (81, [6, 5]), (96, [6, 6]),
     (112, [7, 7]), (120, [10, 5]), (152, [10, 9]), (20, [3]), (1, [1])],
)  # fmt: skip
def test_ten_steps_of_eight_environments(total, expected):
    assert lengths(total, 10, 8)[0] == expected


@given(st.integers(1, 5000), st.integers(1, 64), st.integers(1, 16))
def test_the_total_is_met_and_no_rollout_is_small(total, n_steps, num_envs):
    steps, done = lengths(total, n_steps, num_envs)
    assert total <= done < total + num_envs
    assert max(steps) <= n_steps
    if len(steps) > 1:
        assert min(steps) >= n_steps / 2


def test_progress_runs_from_1_to_0():
    run = training(goal=200, start=100)
    assert [run.progress_remaining(at) for at in (0, 100, 200)] == [1.0, 0.5, 0.0]


@given(st.integers(500, 5000), st.floats(0.7, 0.99), st.integers(0, 100))
@example(500, 0.96875, 40)  # a rollout without a reset, before the last one
@example(3755, 0.7149033608705685, 26)
@example(500, 0.8671875, 22)
def test_resets_among_the_rows_leave_no_small_rollout_either(total, share, seed):
    """Rows count with some probability, as in autoreset mode NEXT_STEP."""
    run, done, n_steps, num_envs = training(total), 0, 20, 8
    rng, sizes, seen = np.random.default_rng(seed), [], 1.0
    while done < total:
        before = done
        steps = run.next_steps(done, n_steps, num_envs, seen)
        made = 0
        while made < steps:
            made += 1
            done += rng.binomial(num_envs, share)
            if done >= total:
                break
        sizes.append(done - before)
        seen = max((done - before) / (made * num_envs), 0.5)
    assert total <= done < total + num_envs
    assert min(sizes) >= 0.1 * n_steps * num_envs * share
