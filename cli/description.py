"""What is in a model file, and where it comes from."""

import json
from collections.abc import Mapping
from typing import Any

from rich.table import Table

from .build import load_policy
from .console import results
from .formatting import significant
from .outcome import load_evaluations
from .run_config import RunConfig, load_about
from .run_folder import Choice, RunFolder, find_model


def describe(choice: Choice) -> dict[str, Any]:
    """Return what is known of a model, as JSON values."""
    found = find_model(choice)
    policy = load_policy(found.path)
    metadata = policy.metadata
    return {
        "model": str(found.path),
        "size": found.path.stat().st_size,
        "timesteps": metadata["num_timesteps"],
        "observations": " ".join(str(policy.observation_space).split()),
        "actions": " ".join(str(policy.action_space).split()),
        "seed": metadata["seed"],
        **(_of_run(found.run, metadata["num_timesteps"]) if found.run else {}),
        "settings": metadata["config"],
    }


def show(description: Mapping[str, Any], as_json: bool) -> None:
    """Print a description: a table for people, JSON for programs."""
    console = results()
    if as_json:
        console.out(json.dumps(description, indent=2), highlight=False)
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for key, value in description.items():
        table.add_row(key, _readable(key, value))
    console.print(table)


def _of_run(run: RunFolder, timesteps: int) -> dict[str, Any]:
    config, about = RunConfig.load(run.config), load_about(run.config)
    scores = {
        evaluation.timesteps: evaluation.mean for evaluation in load_evaluations(run.evaluations)
    }
    score = scores.get(timesteps)
    return {
        "task": config.task,
        "environment": config.environment.id,
        "evaluation": score,
        "steps of the run": config.total_timesteps,
        "started": about.get("started"),
        "command": about.get("command"),
        "versions": about.get("versions"),
        "commit": (about.get("git") or {}).get("commit"),
    }


def _readable(key: str, value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{name} {_readable(name, entry)}" for name, entry in value.items())
        return f"({inner})" if "schedule" in value else inner
    if key == "size":
        return f"{value / 1024:,.0f} KiB"
    if value is None:
        return "-"
    if isinstance(value, float) and key == "evaluation":
        return significant(value)
    return f"{value:,}" if type(value) is int and key != "seed" else str(value)
