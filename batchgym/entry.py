"""Where Gymnasium finds the creator of a twin: `batchgym.entry:<base id>`.

`make_vec` calls a creator without telling it the id. So each id has its own creator, made when it
is asked for: specs stay strings, and survive `to_json`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import gymnasium as gym

from batchgym.registration import create
from batchgym.vector_env import ProcessVectorEnv


def __getattr__(name: str) -> Callable[..., ProcessVectorEnv]:
    if name.startswith("__") or name not in gym.registry:
        raise AttributeError(f"no environment with the id {name!r} is registered")
    return functools.partial(create, gym.registry[name])
