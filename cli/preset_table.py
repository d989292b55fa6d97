"""Presets as tables for people."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from .console import results
from .preset import Preset
from .tables import print_pairs

_WIDE = 66  # columns of a terminal in which all fits


def show_all(presets: Mapping[str, Preset]) -> None:
    """Print a line for each preset, with as many columns as there is room for."""
    console = results()
    shown = [
        {
            "preset": name,
            "environment": preset.env_id,
            "goal": "-" if preset.goal is None else f"{preset.goal:,g}",
            "steps": f"{preset.total_timesteps:,}",
            "envs": str(preset.num_envs),
            "rollout": f"{preset.num_envs * preset.agent['n_steps']:,}",
        }
        for name, preset in presets.items()
    ]
    headings = list(shown[0])[: 3 if console.width < _WIDE else None]
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in headings:
        is_text = heading in ("preset", "environment")
        table.add_column(
            heading,
            justify="left" if is_text else "right",
            style="bold" if heading == "preset" else "",
            overflow="fold",
        )
    for row in shown:
        table.add_row(*(row[heading] for heading in headings))
    console.print(table)


def show_one(name: str, preset: Preset) -> None:
    """Print all that a preset says."""
    about = {
        "preset": name,
        "environment": preset.env_id,
        **({"wrappers": "\n".join(preset.wrappers)} if preset.wrappers else {}),
        **({} if preset.goal is None else {"goal": f"mean return {preset.goal:,g}"}),
        "settings from": preset.source,
        "timesteps": f"{preset.total_timesteps:,}",
        "num_envs": str(preset.num_envs),
    }
    print_pairs(results(), {**about, **dict(_flattened(preset.agent))})


def _flattened(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield settings as `--set` takes them: a line each, also for those inside of others."""
    for key, value in settings.items():
        if key == "policy_kwargs":
            yield from _flattened(value, f"{key}.")
        else:
            yield f"{prefix}{key}", _written(value)


def _written(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value).replace(", ", ",")
