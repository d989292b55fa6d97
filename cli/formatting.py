"""Numbers as people read them."""

import math


def significant(value: float) -> str:
    """Return a return or a length with about four digits: 0.1234, 12.34, 123.4, 1,234."""
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0.0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    digits = 3 - math.floor(math.log10(abs(value)))
    return f"{value:,.{min(max(digits, 1), 4)}f}"


def duration(seconds: float) -> str:
    """Return a time span: 8 s, 2 min 05 s, 3 h 07 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
