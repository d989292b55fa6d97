"""Recording a trained agent."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from .build import load_policy, make_rendering_env, recall
from .console import messages, results
from .errors import CommandFailed
from .extras import require_extra
from .fitting import require_fitting
from .formatting import duration, significant
from .run_folder import Choice
from .video import check_output, open_video

_DEFAULT_FPS = 30


@dataclass(frozen=True)
class Episode:
    """What one recorded episode came to."""

    return_: float
    length: int


def record(
    choice: Choice,
    output: Path | None,
    episodes: int,
    max_steps: int | None,
    fps: int | None,
    seed: int,
) -> None:
    """Play episodes with an agent, and write them into a video.

    Args:
        choice: Which agent.
        output: Video to write; None for a new one beside the model.
        episodes: How many.
        max_steps: Steps after which an episode ends at the latest.
        fps: Frames a second; None for as many as the environment makes steps.
        seed: Of the first episode; the next ones have the next seeds.
    """
    if output is not None:
        check_output(output)
    require_extra("render", "recording a video")
    model, environment = recall(choice)
    policy = load_policy(model, seed)
    path = output or _free_name(model.parent)
    console = messages()
    with make_rendering_env(environment, "rgb_array") as env:
        require_fitting(policy, model, environment.id, env.observation_space, env.action_space)
        rate = fps or env.metadata.get("render_fps") or _DEFAULT_FPS
        with open_video(path, rate) as video, console.status("Drawing ...") as status:

            def draw(step: int) -> None:
                status.update(f"Drawing step {step:,} ...")
                video.add(_frame(env))

            for number in range(episodes):
                episode = _play(policy, env, seed + number, max_steps, draw)
                console.print(
                    f"episode {number + 1}: return {significant(episode.return_)}, "
                    f"{episode.length:,} steps ({duration(episode.length / rate)} of video)"
                )
    results().print(str(path), soft_wrap=True)


def watch(choice: Choice, episodes: int, max_steps: int | None, seed: int) -> None:
    """Play episodes with an agent, in a window; arguments as of `record`."""
    model, environment = recall(choice)
    policy = load_policy(model, seed)
    with make_rendering_env(environment, "human") as env:
        require_fitting(policy, model, environment.id, env.observation_space, env.action_space)
        for number in range(episodes):
            episode = _play(policy, env, seed + number, max_steps, lambda _step: None)
            messages().print(
                f"episode {number + 1}: return {significant(episode.return_)}, "
                f"{episode.length:,} steps"
            )


def _play(
    policy: Any,
    env: gymnasium.Env[Any, Any],
    seed: int,
    max_steps: int | None,
    draw: Callable[[int], None],
) -> Episode:
    """Play one episode, with the most likely action in each step, and draw each state of it."""
    observation, _ = env.reset(seed=seed)
    draw(0)
    state = None
    total, length, done = 0.0, 0, False
    while not done:
        action, state = policy.predict(
            observation, state=state, episode_start=np.array([length == 0]), deterministic=True
        )
        observation, reward, terminated, truncated, _ = env.step(action)
        total += float(reward)
        length += 1
        draw(length)
        done = terminated or truncated or length == max_steps
    return Episode(total, length)


def _frame(env: gymnasium.Env[Any, Any]) -> Any:
    frame: Any = env.render()
    shape = getattr(frame, "shape", None)
    if shape is None or len(shape) != 3 or shape[2] != 3 or frame.dtype != np.uint8:
        what = type(frame).__name__ if shape is None else f"an array of {frame.dtype} {shape}"
        raise CommandFailed(f"the environment rendered {what}, expected uint8 [height, width, 3]")
    return frame


def _free_name(folder: Path) -> Path:
    names = itertools.chain(["video.mp4"], (f"video_{n}.mp4" for n in itertools.count(2)))
    return next(folder / name for name in names if not (folder / name).exists())
