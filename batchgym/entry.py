"""Where Gymnasium finds the creator of a twin: `batchgym.entry:<id of the environment>`.

`make_vec` calls a creator without telling it the id. So each id has a creator of its own, made when
it is looked up: specs hold strings only, which survives `to_json`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym

from batchgym.registration import creator_of
from batchgym.twin import Twin

_MAKE = "make "


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if not name.startswith(_MAKE):
        return creator_of(name)
    base = Twin.base_of(name.removeprefix(_MAKE))

    def make(**kwargs: Any) -> gym.Env[Any, Any]:
        return gym.make(base, **kwargs)

    return make
