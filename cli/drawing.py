"""Learning curves as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .curves import Curve
from .errors import BadInput
from .extras import require_extra
from .files import new_file

PICTURES = (".png", ".svg", ".pdf")
# Told apart also by those who see few colours: Okabe and Ito (2008).
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_NAMES = {
    "rollout/ep_rew_mean": "mean return of the latest episodes",
    "eval/mean_reward": "mean return in evaluations",
}


def check_picture(path: Path) -> None:
    """Raise BadInput unless `path` has a format that can be written, in a folder that exists."""
    if path.suffix.lower() not in PICTURES:
        raise BadInput(f"cannot draw into {path}; use one of {', '.join(PICTURES)}")
    if not path.parent.is_dir():
        raise BadInput(f"the folder {path.parent} for the picture does not exist")
    require_extra("plot", "drawing")


def draw(curves: Sequence[Curve], metric: str, path: Path) -> None:
    """Draw the curves, a panel for each task.

    Args:
        curves: At least one.
        metric: What the vertical axis shows.
        path: Picture to write.
    """
    import matplotlib
    from matplotlib.figure import Figure

    tasks = list(dict.fromkeys(curve.task for curve in curves))
    with matplotlib.rc_context({"font.size": 10, "svg.fonttype": "none"}):
        figure = Figure(figsize=(1.0 + 5.0 * len(tasks), 3.8), layout="constrained")
        panels = figure.subplots(1, len(tasks), squeeze=False)[0]
        for task, panel in zip(tasks, panels, strict=True):
            _draw_panel(panel, task, [curve for curve in curves if curve.task == task])
        panels[0].set_ylabel(_NAMES.get(metric, metric))
        with new_file(path) as temporary:
            figure.savefig(temporary, dpi=150)


def _draw_panel(panel: Any, task: str, curves: Sequence[Curve]) -> None:
    from matplotlib.ticker import EngFormatter

    for number, curve in enumerate(curves):
        colour = _COLOURS[number % len(_COLOURS)]
        panel.plot(curve.steps, curve.mean, color=colour, linewidth=1.8, label=curve.label)
        if curve.interval is not None:
            panel.fill_between(curve.steps, *curve.interval, color=colour, alpha=0.2, linewidth=0)
    panel.set_title(task, loc="left", fontweight="bold")
    panel.set_xlabel("environment steps")
    panel.xaxis.set_major_formatter(EngFormatter(sep=""))
    panel.grid(color="#e5e5e5", linewidth=0.8)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    panel.margins(x=0.0)
    panel.legend(frameon=False, fontsize=9)
