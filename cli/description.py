"""What is in a model file, and where it comes from."""

import json
from collections.abc import Mapping
from typing import Any

from batchppo.model_state import ModelState

from .console import results
from .formatting import significant
from .outcome import load_evaluations
from .run_config import RunConfig, load_about
from .run_folder import Choice, RunFolder, find_model
from .tables import print_pairs

_PARTS = ("architecture", "settings")


def describe(choice: Choice) -> dict[str, Any]:
    """Return what is known of a model, as JSON values."""
    found = find_model(choice)
    state = ModelState.read(found.path)
    timesteps = state.num_timesteps
    return {
        "model": str(found.path),
        "size": found.path.stat().st_size,
        "timesteps": timesteps,
        **(_of_run(found.run, timesteps) if found.run else {}),
        "observations": " ".join(str(state.observation_space).split()),
        "actions": " ".join(str(state.action_space).split()),
        "seed": state.seed,
        "versions": state.versions,
        "policy": state.policy_name,
        "architecture": state.architecture.to_json(),
        "settings": state.config.to_json(),
    }


def show(description: Mapping[str, Any], as_json: bool) -> None:
    """Print a description: tables for people, JSON for programs."""
    console = results()
    if as_json:
        console.out(json.dumps(description, indent=2), highlight=False)
        return
    general = [key for key in description if key not in _PARTS]
    print_pairs(console, {key: _shown(key, description[key]) for key in general})
    for part in _PARTS:
        console.print(f"\n{part}", style="dim")
        entries = description[part].items()
        print_pairs(console, {f"  {key}": _readable(value) for key, value in entries})


def _of_run(run: RunFolder, timesteps: int) -> dict[str, Any]:
    config, about = RunConfig.load(run.config), load_about(run.config)
    scores = {
        evaluation.timesteps: evaluation.mean for evaluation in load_evaluations(run.evaluations)
    }
    return {
        "steps of the run": config.total_timesteps,
        "evaluation": scores.get(timesteps),
        "task": config.task,
        "environment": config.environment.id,
        "started": about.get("started"),
        "command": about.get("command"),
        "commit": (about.get("git") or {}).get("commit"),
    }


def _shown(key: str, value: Any) -> str:
    """Return a value of the general part, as people read it."""
    if key == "size":
        return f"{value / 1024:,.0f} KiB"
    if key == "evaluation" and value is not None:
        return f"mean return {significant(value)}"
    if key == "seed":
        return str(value)
    return f"{value:,}" if type(value) is int else _readable(value)


def _readable(value: Any) -> str:
    """Return a setting as `--set` takes it, as far as that goes."""
    if isinstance(value, Mapping) and value.get("schedule") == "linear":
        end = f" at {value['end_fraction']:g} of all steps" if value["end_fraction"] != 1 else ""
        return f"linear from {value['start']:g} to {value['end']:g}{end}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_readable(entry)}" for name, entry in value.items()) or "-"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_readable, value))}]"
    if value is None or isinstance(value, bool):
        return "-" if value is None else str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
