"""Whether an array holds only finite numbers."""

import numpy as np
import pytest

from batchppo.all_finite import all_finite


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], True),
        ([[1.0, -2.0]], True),
        ([3e38, -3e38], True),  # whose squares are not
        ([1e-45, 0.0], True),
        ([1.0, np.nan], False),
        ([np.inf, 1.0], False),
        ([np.inf, -np.inf], False),
        ([[0.0], [-np.inf]], False),
    ],
)
def test_against_each_value(values, expected, dtype):
    array = np.array(values, dtype)
    assert all_finite(array) is expected
    assert all_finite(np.repeat(array, 3, axis=-1)[..., ::3]) is expected  # not contiguous
