"""What TASK on the command line means: a preset, or the id of any registered environment."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass

import gymnasium
from gymnasium.envs.registration import EnvSpec

from .errors import BadInput
from .extras import require_extra, require_extra_of
from .preset import Preset
from .presets import PRESETS
from .silence import register_atari
from .suggestions import did_you_mean

_DEFAULT_TIMESTEPS = 1_000_000
_DEFAULT_NUM_ENVS = 8


@dataclass(frozen=True)
class Task:
    """A task and the settings that it starts from.

    Attributes:
        name: What its run folders are named after.
        preset: The settings.
    """

    name: str
    preset: Preset


def find_task(name: str, modules: Sequence[str] = ()) -> Task:
    """Return the task called `name`.

    Args:
        name: A preset, or the id of a registered environment, which may name the module that
            registers it (`my_package:MyTask-v0`).
        modules: Modules to import first, which register environments.

    Raises:
        BadInput: There is no such task; the message names the nearest ones.
        CommandFailed: The environment needs an extra that is not installed.
    """
    import_modules(modules)
    if name in PRESETS:
        return Task(name, PRESETS[name])
    spec = find_spec(name)
    preset = Preset(
        env_id=name,
        total_timesteps=_DEFAULT_TIMESTEPS,
        num_envs=_DEFAULT_NUM_ENVS,
        goal=spec.reward_threshold,
    )
    return Task(spec.id.replace("/", "-"), preset)


def find_spec(env_id: str) -> EnvSpec:
    """Return the registered specification of `env_id`.

    Raises:
        BadInput: No environment is registered under this id.
        CommandFailed: The environment needs an extra that is not installed.
    """
    module, _, bare_id = env_id.rpartition(":")
    import_modules([module] if module else [])
    if bare_id.startswith("ALE/"):
        require_extra("atari", bare_id)
    if bare_id not in gymnasium.registry:
        register_atari()
    if bare_id not in gymnasium.registry:
        known = [*PRESETS, *(key for key in gymnasium.registry if not key.startswith("batchgym/"))]
        hint = did_you_mean(bare_id, known) or (
            " Environments of other packages: --import PACKAGE, or PACKAGE:ID."
        )
        raise BadInput(f"there is no preset and no Gymnasium id {bare_id!r}.{hint}")
    spec = gymnasium.registry[bare_id]
    require_extra_of(bare_id, spec.entry_point)
    return spec


def import_modules(modules: Sequence[str]) -> None:
    """Import modules that register environments.

    Raises:
        BadInput: A module does not exist, or one that it imports.
    """
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise BadInput(
                f"cannot import {module!r}, which registers environments: {error}"
            ) from error
