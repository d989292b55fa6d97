"""Everything that determines a run: enough to start the same one again."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

from .errors import BadInput
from .files import write_text
from .suggestions import did_you_mean

_FORMAT = 1
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class EnvConfig:
    """How to make the environment.

    Attributes:
        id: Gymnasium id; may name the module that registers it (`my_package:MyTask-v0`).
        kwargs: Keyword arguments of the environment.
        wrappers: Wrappers as `wrappers.load_wrapper` reads them, the innermost first.
        imports: Modules to import first, which register environments.
    """

    id: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrappers: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The settings of a run, as `config.json` in its folder holds them.

    Attributes:
        task: Preset or environment id, as run folders are named.
        environment: How to make the environment.
        total_timesteps: Environment steps to train for.
        num_envs: Number of environments that step in parallel.
        seed: Seed of the environments, of the network and of the actions.
        eval_every: Environment steps between two evaluations.
        eval_episodes: Episodes of one evaluation.
        num_workers: Processes that the environments are spread over; None for one per core.
        checkpoint_every: Environment steps between checkpoints; None for none.
        stop_at: Mean return of an evaluation at which the training ends; None for never.
        agent: Keyword arguments of `batchppo.BatchPPO`.
    """

    task: str
    environment: EnvConfig
    total_timesteps: int
    num_envs: int
    seed: int
    eval_every: int
    eval_episodes: int
    num_workers: int | None = None
    checkpoint_every: int | None = None
    stop_at: float | None = None
    agent: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("total_timesteps", "num_envs", "eval_every", "eval_episodes"):
            _require_count(name, getattr(self, name))
        for name in ("num_workers", "checkpoint_every"):
            if getattr(self, name) is not None:
                _require_count(name, getattr(self, name))
        if type(self.seed) is not int or self.seed < 0:
            raise BadInput(f"seed must be a whole number of at least 0, got {self.seed!r}")

    def updated(self, changes: Mapping[str, Any], where: str) -> Self:
        """Return these settings with changes; those of agent and environment are merged in.

        Args:
            changes: Settings by name, as JSON or TOML hold them.
            where: What an error message begins with.

        Raises:
            BadInput: An unknown setting, or a value that is not allowed.
        """
        own = {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self)}
        parts = {"environment": vars(self.environment), "agent": self.agent}
        for name in parts.keys() & changes.keys():
            if not isinstance(changes[name], Mapping):
                raise BadInput(f"{where}: {name} must be a table, got {changes[name]!r}")
        merged = {name: {**part, **changes.get(name, {})} for name, part in parts.items()}
        environment = _build(EnvConfig, merged["environment"], f"{where}: environment")
        return _build(type(self), {**own, **changes, **merged, "environment": environment}, where)

    def save(self, path: Path, about: Mapping[str, Any]) -> None:
        """Write the settings to a JSON file.

        Args:
            path: File to write.
            about: Where the run comes from (command, versions, ...). Not part of the settings, and
                not read again.
        """
        settings = dataclasses.asdict(self)
        content = {"format": _FORMAT, **settings, "about": dict(about)}
        write_text(path, json.dumps(content, indent=2) + "\n")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the settings that `save` wrote.

        Raises:
            BadInput: The file is none of ours, or has settings that this version does not know.
        """
        content = _read(path)
        content.pop("about", None)
        environment = _build(EnvConfig, content.pop("environment", {}), f"{path}: environment")
        return _build(cls, {**content, "environment": environment}, str(path))


def load_about(path: Path) -> dict[str, Any]:
    """Return what `RunConfig.save` was told about the run."""
    about: dict[str, Any] = _read(path).get("about", {})
    return about


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: not a JSON file ({error})") from error
    if not isinstance(content, dict) or content.pop("format", None) != _FORMAT:
        raise BadInput(f"{path}: not the configuration of a run (expected format: {_FORMAT})")
    return content


def _build(kind: type[T], values: Any, where: str) -> T:
    """Make a dataclass from what JSON held, or say what does not fit."""
    if not isinstance(values, dict):
        raise BadInput(f"{where}: expected an object, got {values!r}")
    names = {entry.name for entry in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for unknown in values.keys() - names:
        raise BadInput(f"{where}: unknown setting {unknown!r}.{did_you_mean(unknown, names)}")
    try:
        return kind(**{key: tuple(v) if isinstance(v, list) else v for key, v in values.items()})
    except (TypeError, BadInput) as error:
        raise BadInput(f"{where}: {error}") from error


def _require_count(name: str, value: Any) -> None:
    if type(value) is not int or value < 1:
        raise BadInput(f"{name} must be a whole number of at least 1, got {value!r}")
