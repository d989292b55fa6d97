"""Everything that determines a run: enough to start the same one again."""

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

from .errors import BadInput
from .files import write_text
from .options import LARGEST_SEED
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

    def __post_init__(self) -> None:
        _require(isinstance(self.id, str) and self.id, "id", "the id of an environment", self.id)
        _require(isinstance(self.kwargs, Mapping), "kwargs", "a table", self.kwargs)
        for key, value in self.kwargs.items():
            _require(_is_storable(value), f"kwargs.{key}", "numbers, texts and lists", value)
        for name, texts in (("wrappers", self.wrappers), ("imports", self.imports)):
            is_list = isinstance(texts, tuple) and all(isinstance(text, str) for text in texts)
            _require(is_list, name, "a list of texts", texts)


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
        num_workers: Worker processes that the environments are spread over; 0 for this process
            alone, None for one process per core.
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
        is_name = isinstance(self.task, str) and Path(self.task).name == self.task
        _require(is_name and self.task not in ("", ".."), "task", "the name of a folder", self.task)
        for name in ("total_timesteps", "num_envs", "eval_every", "eval_episodes"):
            _require_count(name, getattr(self, name))
        if self.checkpoint_every is not None:
            _require_count("checkpoint_every", self.checkpoint_every)
        if self.num_workers is not None:
            _require_count("num_workers", self.num_workers, least=0)
        is_seed = type(self.seed) is int and 0 <= self.seed <= LARGEST_SEED
        _require(is_seed, "seed", f"a whole number from 0 to {LARGEST_SEED}", self.seed)
        is_return = type(self.stop_at) in (int, float) and math.isfinite(self.stop_at or 0.0)
        _require(self.stop_at is None or is_return, "stop_at", "a number", self.stop_at)
        _require(isinstance(self.agent, Mapping), "agent", "a table", self.agent)

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
    """Return what `RunConfig.save` was told about the run.

    Raises:
        BadInput: The file is none of ours, or this part of it is not as it was written.
    """
    about = _read(path).get("about", {})
    kinds: dict[str, Any] = {"resumed": list, "git": (dict, type(None)), "versions": dict}
    _require(isinstance(about, dict), f"{path}: about", "a table", about)
    for name in kinds.keys() & about.keys():
        fits = isinstance(about[name], kinds[name])
        _require(fits, f"{path}: about.{name}", "as batchppo wrote it", about[name])
    return dict(about)


def as_whole(value: Any) -> Any:
    """Return a number such as 1e6 as the whole number that it is, and anything else as it came."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


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
    fields = {entry.name: entry for entry in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for unknown in values.keys() - fields.keys():
        raise BadInput(f"{where}: unknown setting {unknown!r}.{did_you_mean(unknown, fields)}")
    missing = [name for name in fields if name not in values and _is_required(fields[name])]
    if missing:
        raise BadInput(f"{where}: missing {', '.join(map(repr, missing))}")
    try:
        return kind(**{key: _as_field(fields[key], value) for key, value in values.items()})
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from error


def _is_required(field: "dataclasses.Field[Any]") -> bool:
    return field.default is field.default_factory is dataclasses.MISSING


def _as_field(field: "dataclasses.Field[Any]", value: Any) -> Any:
    """Return a value of JSON or TOML as the field holds it: lists as tuples, counts as numbers."""
    if isinstance(value, list):
        return tuple(value)
    return as_whole(value) if field.type in (int, int | None) else value


def _is_storable(value: Any) -> bool:
    """Return whether a value is the same after it was stored as JSON, tuples as lists aside."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_storable(entry) for key, entry in value.items())
    if isinstance(value, (list, tuple)):
        return all(map(_is_storable, value))
    return value is None or isinstance(value, (bool, int, float, str))


def _require_count(name: str, value: Any, least: int = 1) -> None:
    is_count = type(value) is int and value >= least
    _require(is_count, name, f"a whole number of at least {least}", value)


def _require(condition: object, name: str, expected: str, value: Any) -> None:
    if not condition:
        raise BadInput(f"{name} must be {expected}, got {value!r}")
