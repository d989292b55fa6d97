"""Spaces in a few words."""

from typing import Any

from gymnasium import Space, spaces


def brief(space: Space[Any]) -> str:
    """Return the kind of a space and its size: `Box 96x96x3 uint8`, `Discrete 2`."""
    if isinstance(space, spaces.Box):
        shape = "x".join(map(str, space.shape))
        return f"Box {shape} {space.dtype}".replace("  ", " ")
    if isinstance(space, spaces.Discrete):
        return f"Discrete {space.n}"
    if isinstance(space, spaces.MultiDiscrete):
        return f"MultiDiscrete {'x'.join(map(str, space.nvec.ravel()))}"
    if isinstance(space, spaces.MultiBinary):
        return f"MultiBinary {'x'.join(map(str, space.shape))}"
    if isinstance(space, spaces.Dict):
        return f"Dict ({', '.join(f'{key}: {brief(entry)}' for key, entry in space.items())})"
    return type(space).__name__
