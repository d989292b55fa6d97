"""From the options of `batchppo train` to the settings of a run."""

import secrets

from .options import LARGEST_SEED
from .run_config import EnvConfig, RunConfig
from .task import find_task

_EVALUATIONS = 10


def plan_run(
    task_name: str,
    *,
    timesteps: int | None,
    num_envs: int | None,
    num_workers: int | None,
    seed: int | None,
    eval_every: int | None,
    eval_episodes: int,
) -> RunConfig:
    """Return the settings of a run: the options where they are given, or else the task's own.

    Args:
        task_name: TASK on the command line.
        timesteps: Environment steps to train for.
        num_envs: Environments in parallel.
        num_workers: Worker processes.
        seed: Seed; None for one drawn now.
        eval_every: Environment steps between evaluations; None for a tenth of the training.
        eval_episodes: Episodes of an evaluation.

    Raises:
        BadInput: There is no such task.
        CommandFailed: The task needs an extra that is not installed.
    """
    task = find_task(task_name)
    total = timesteps or task.total_timesteps
    return RunConfig(
        task=task.name,
        environment=EnvConfig(id=task.env_id),
        total_timesteps=total,
        num_envs=num_envs or task.num_envs,
        num_workers=num_workers,
        seed=secrets.randbelow(LARGEST_SEED) if seed is None else seed,
        eval_every=eval_every or max(1, total // _EVALUATIONS),
        eval_episodes=eval_episodes,
        agent=dict(task.agent),
    )
