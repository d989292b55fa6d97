"""Several seeds at once: `--seeds 0-4`."""

import click

from .errors import BadInput
from .options import SEED

_MOST = 1000


def parse_seeds(text: str) -> list[int]:
    """Return the seeds that a text such as `0-4` or `1,3,10-12` means, in its order.

    Raises:
        BadInput: The text has another form, or names a seed twice.
    """
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        try:
            low = SEED.convert(first, None, None)
            high = SEED.convert(last, None, None) if dash else low
        except click.BadParameter as error:
            raise BadInput(f"--seeds {text}: {error.message} Write 0-4 or 1,3,5") from error
        if high < low:
            raise BadInput(f"--seeds {text}: {part} goes backwards")
        if len(seeds) + high - low >= _MOST:
            raise BadInput(f"--seeds {text}: these are more than {_MOST} seeds")
        seeds.extend(range(low, high + 1))
    if len(set(seeds)) < len(seeds):
        raise BadInput(f"--seeds {text}: a seed is named twice")
    return seeds
