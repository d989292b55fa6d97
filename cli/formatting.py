"""Numbers as people read them."""

import math


def significant(value: float) -> str:
    """Return a return or a length with about four digits: 0.1234, 12.34, 123.4, 1,234."""
    return f"{value:,.{_decimals(value)}f}"


def mean_and_std(mean: float, std: float) -> str:
    """Return a mean and a standard deviation, both as exact as the mean: 123.4 ± 5.6."""
    return f"{significant(mean)} ± {std:,.{_decimals(mean)}f}"


def _decimals(value: float) -> int:
    if not math.isfinite(value) or abs(value) >= 1000:
        return 0
    if value == 0:
        return 1
    return min(max(3 - math.floor(math.log10(abs(value))), 1), 4)


def duration(seconds: float) -> str:
    """Return a time span: 8 s, 2 min 05 s, 3 h 07 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
