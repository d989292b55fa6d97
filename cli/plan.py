"""From the options of `batchppo train` to the settings of a run."""

import dataclasses
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import BadInput
from .options import LARGEST_SEED
from .run_config import EnvConfig, RunConfig, as_whole
from .seeds import parse_seeds
from .settings import (
    check_settings,
    parse_literal,
    parse_settings,
    split_assignment,
    typed_settings,
)
from .task import find_task
from .toml import read_toml

# Option -> setting of the run: those that may differ when a run is resumed, and all.
_RESUMABLE = {
    "timesteps": "total_timesteps",
    "num_workers": "num_workers",
    "eval_every": "eval_every",
    "eval_episodes": "eval_episodes",
    "checkpoint_every": "checkpoint_every",
    "stop_at": "stop_at",
}
_SETTINGS = {**_RESUMABLE, "num_envs": "num_envs", "seed": "seed"}
# How options are written whose names are not those here.
_FLAGS = {
    "num_envs": "--num-envs",
    "settings": "--set",
    "env_kwargs": "--env-kwarg",
    "wrappers": "--wrapper",
    "imports": "--import",
}

_EVALUATIONS = 10
_DEFAULT_EPISODES = 10


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """What the command line said about a run; None and empty where it said nothing.

    Attributes:
        timesteps: Environment steps to train for.
        num_envs: Environments in parallel.
        num_workers: Worker processes.
        seed: Seed.
        settings: `KEY=VALUE` texts: hyperparameters.
        env_kwargs: `KEY=VALUE` texts: arguments of the environment.
        wrappers: Wrappers of the environment.
        imports: Modules that register environments.
        eval_every: Environment steps between evaluations.
        eval_episodes: Episodes of an evaluation.
        checkpoint_every: Environment steps between checkpoints.
        stop_at: Mean return of an evaluation at which to stop.
        histograms: Whether TensorBoard gets histograms.
    """

    timesteps: int | None = None
    num_envs: int | None = None
    num_workers: int | None = None
    seed: int | None = None
    settings: Sequence[str] = ()
    env_kwargs: Sequence[str] = ()
    wrappers: Sequence[str] = ()
    imports: Sequence[str] = ()
    eval_every: int | None = None
    eval_episodes: int | None = None
    checkpoint_every: int | None = None
    stop_at: float | None = None
    histograms: bool | None = None


def plan_runs(
    task_name: str | None, file: Path | None, seeds: str | None, options: TrainOptions
) -> list[RunConfig]:
    """Return the settings of a run, or of one run for each seed.

    Args:
        task_name: TASK on the command line.
        file: A file with settings: TOML, or the `config.json` of a run.
        seeds: Text that names seeds, see `parse_seeds`.
        options: What comes before the settings of the task and of the file.

    Raises:
        BadInput: There is no such task, setting or file.
        CommandFailed: The task needs an extra that is not installed.
    """
    base = _base(task_name, file, options)
    config = dataclasses.replace(base, **_changes(base, options))
    check_settings(config.agent)
    if seeds is None:
        return [config]
    return [dataclasses.replace(config, seed=seed) for seed in parse_seeds(seeds)]


def _base(task_name: str | None, file: Path | None, options: TrainOptions) -> RunConfig:
    """Return the settings before the options change them."""
    if file is None:
        return _config_of(task_name, {}, options)
    if file.suffix == ".json":
        base = RunConfig.load(file)
        if task_name is not None:
            base = dataclasses.replace(base, task=find_task(task_name, options.imports).name)
    else:
        document = read_toml(file)
        named = document.pop("task", None)
        if task_name is None and named is None:
            raise BadInput(
                f'{file} names no task: add a line like task = "cartpole", or give a TASK'
            )
        name = named if task_name is None else task_name
        base = _config_of(name, document, options).updated(document, str(file))
    base = dataclasses.replace(base, agent=typed_settings(base.agent, f"{file}: "))
    check_settings(base.agent, f"{file}: ")
    if task_name is not None:
        _require_same_environment(task_name, file, base, options)
    return base


def _require_same_environment(
    task_name: str, file: Path, base: RunConfig, options: TrainOptions
) -> None:
    """Raise BadInput if a file is for another environment than the task on the command line."""
    env_id = find_task(task_name, options.imports).preset.env_id
    if base.environment.id != env_id:
        raise BadInput(
            f"{file} is for the environment {base.environment.id}, {task_name} means {env_id}: "
            "leave TASK out, or take the environment out of the file"
        )


def _config_of(name: object, document: Mapping[str, Any], options: TrainOptions) -> RunConfig:
    """Return the settings that a task starts from, with a new seed.

    Evaluations follow from the number of steps, wherever that comes from.
    """
    if not isinstance(name, str) or not name.strip():
        raise BadInput(f"TASK must be a preset or the id of an environment, got {name!r}")
    task = find_task(name, [*options.imports, *_imports_of(document)])
    preset = task.preset
    given = as_whole(document.get("total_timesteps"))
    total = options.timesteps or given or preset.total_timesteps
    every = total // _EVALUATIONS if isinstance(total, int) else 1
    return RunConfig(
        task=task.name,
        environment=EnvConfig(id=preset.env_id, wrappers=preset.wrappers),
        total_timesteps=preset.total_timesteps,
        num_envs=preset.num_envs,
        seed=secrets.randbelow(LARGEST_SEED),
        eval_every=max(1, every),
        eval_episodes=_DEFAULT_EPISODES,
        agent=dict(preset.agent),
    )


def _imports_of(document: Mapping[str, Any]) -> list[str]:
    """Return the modules that a file of settings imports; what is none of them is told later."""
    environment = document.get("environment")
    modules = environment.get("imports") if isinstance(environment, Mapping) else None
    return [name for name in modules if isinstance(name, str)] if isinstance(modules, list) else []


def _changes(base: RunConfig, options: TrainOptions) -> dict[str, Any]:
    """Return the settings that the command line changes."""
    given = {setting: getattr(options, name) for name, setting in _SETTINGS.items()}
    return {
        **{setting: value for setting, value in given.items() if value is not None},
        "agent": _merged(base.agent, _agent_changes(options)),
        "environment": _environment(base.environment, options),
    }


def _agent_changes(options: TrainOptions) -> dict[str, Any]:
    """Return the settings of the agent that the command line changes."""
    settings = parse_settings(options.settings)
    return {**settings, "log_histograms": True} if options.histograms else settings


def resumable_changes(options: TrainOptions) -> dict[str, Any]:
    """Return the settings that the command line changes, of those that a resumed run may change.

    Raises:
        BadInput: It changes others too.
    """
    given = {name: value for name, value in vars(options).items() if value not in (None, ())}
    others = [_FLAGS.get(name, f"--{name}") for name in given if name not in _RESUMABLE]
    if others:
        raise cannot_resume_with(others)
    return {_RESUMABLE[name]: value for name, value in given.items()}


def cannot_resume_with(names: Sequence[str]) -> BadInput:
    """Return the error that these arguments make no sense for a run that goes on."""
    return BadInput(
        f"{', '.join(names)} cannot be given with --resume: a run goes on with the settings that "
        "it began with"
    )


def _environment(base: EnvConfig, options: TrainOptions) -> EnvConfig:
    assignments = [split_assignment(text, "--env-kwarg") for text in options.env_kwargs]
    try:
        return EnvConfig(
            id=base.id,
            kwargs={**base.kwargs, **{key: parse_literal(value) for key, value in assignments}},
            wrappers=(*base.wrappers, *options.wrappers),
            imports=(
                *base.imports,
                *(each for each in options.imports if each not in base.imports),
            ),
        )
    except BadInput as error:
        raise BadInput(f"--env-kwarg: {error}") from error


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the changes, those of keys inside `policy_kwargs` one by one."""
    merged = {**base, **changes}
    inner = base.get("policy_kwargs"), changes.get("policy_kwargs")
    if all(isinstance(value, Mapping) for value in inner):
        merged["policy_kwargs"] = {**inner[0], **inner[1]}  # type: ignore[dict-item]
    return merged
