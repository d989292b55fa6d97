"""Recording a trained agent."""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import batchppo

from .build import make_rendering_env, recall
from .console import messages, results
from .extras import require_extra
from .formatting import duration, significant
from .run_folder import Choice
from .video import VideoWriter, check_output, open_video

_DEFAULT_FPS = 30


@dataclass(frozen=True)
class Episode:
    """What one recorded episode came to."""

    return_: float
    length: int


def record(choice: Choice, output: Path | None, episodes: int, fps: int | None, seed: int) -> None:
    """Play episodes with an agent, and write them into a video."""
    if output is not None:
        check_output(output)
    require_extra("render", "recording a video")
    model, environment = recall(choice)
    policy = batchppo.load_policy(model, seed=seed)
    path = output or _free_name(model.parent)
    with make_rendering_env(environment, "rgb_array") as env:
        rate = fps or env.metadata.get("render_fps") or _DEFAULT_FPS
        with open_video(path, rate) as video:
            for number in range(episodes):
                episode = _play(policy, env, video, seed + number)
                messages().print(
                    f"episode {number + 1}: return {significant(episode.return_)}, "
                    f"{episode.length:,} steps ({duration(episode.length / rate)} of video)"
                )
    results().print(str(path), soft_wrap=True)


def watch(choice: Choice, episodes: int, seed: int) -> None:
    """Play episodes with an agent, in a window."""
    model, environment = recall(choice)
    policy = batchppo.load_policy(model, seed=seed)
    with make_rendering_env(environment, "human") as env:
        for number in range(episodes):
            episode = _play(policy, env, None, seed + number)
            messages().print(
                f"episode {number + 1}: return {significant(episode.return_)}, "
                f"{episode.length:,} steps"
            )


def _play(
    policy: Any, env: gymnasium.Env[Any, Any], video: VideoWriter | None, seed: int
) -> Episode:
    """Play one episode, with the most likely action in each step."""
    observation, _ = env.reset(seed=seed)
    if video is not None:
        video.add(_frame(env))
    state = None
    total, length, done = 0.0, 0, False
    while not done:
        action, state = policy.predict(
            observation, state=state, episode_start=np.array([length == 0]), deterministic=True
        )
        observation, reward, terminated, truncated, _ = env.step(action)
        if video is not None:
            video.add(_frame(env))
        total += float(reward)
        length += 1
        done = terminated or truncated
    return Episode(total, length)


def _frame(env: gymnasium.Env[Any, Any]) -> Any:
    frame = env.render()
    if getattr(frame, "ndim", 0) != 3:
        raise ValueError(
            f"the environment rendered {type(frame).__name__}, expected an array [height, width, 3]"
        )
    return frame


def _free_name(folder: Path) -> Path:
    names = itertools.chain(["video.mp4"], (f"video_{n}.mp4" for n in itertools.count(2)))
    return next(folder / name for name in names if not (folder / name).exists())
