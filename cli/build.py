"""The composition root: settings in, environments and agents out.

This is the only place that knows both batchgym and batchppo.
"""

import contextlib
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode, VectorEnv

import batchgym
import batchppo

from .errors import BadInput, CommandFailed
from .policy_choice import suitable_policy
from .process import prepare_headless_rendering, require_display, silent_tensorflow
from .run_config import EnvConfig, RunConfig
from .run_folder import Choice, find_model
from .silence import silence, silent_in_workers
from .task import find_spec, import_modules
from .wrappers import load_wrapper

_MOST_EVALUATION_ENVS = 16


def make_training_env(config: RunConfig) -> VectorEnv[Any, Any, Any]:
    """Return the environments to train in."""
    return _make_vector_env(config.environment, config.num_envs, config.num_workers)


def make_evaluation_env(environment: EnvConfig, episodes: int) -> VectorEnv[Any, Any, Any]:
    """Return environments to evaluate in, each of which plays as many of the episodes."""
    rounds = math.ceil(episodes / _MOST_EVALUATION_ENVS)
    return _make_vector_env(environment, math.ceil(episodes / rounds), None)


@contextlib.contextmanager
def closing(env: VectorEnv[Any, Any, Any]) -> Iterator[VectorEnv[Any, Any, Any]]:
    """Close environments at the end of this context; after Ctrl-C, in the middle of a step too."""
    try:
        yield env
    except BaseException:
        terminate(env)
        raise
    env.close()


def terminate(env: VectorEnv[Any, Any, Any]) -> None:
    """Close environments without waiting for the step that they are in."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env.close(terminate=True)


def make_rendering_env(environment: EnvConfig, mode: str) -> gymnasium.Env[Any, Any]:
    """Return one environment that is drawn.

    Args:
        environment: How to make it.
        mode: "rgb_array", for arrays, on machines without a display too; or "human", for a window.

    Raises:
        CommandFailed: The environment cannot be drawn in this way.
    """
    import_modules(environment.imports)
    spec = find_spec(environment.id)
    if mode == "human":
        require_display()
    else:
        prepare_headless_rendering(environment.id, spec.entry_point)
    silence(spec)
    env: gymnasium.Env[Any, Any] = gymnasium.make(
        spec, **{**environment.kwargs, "render_mode": mode}
    )
    if env.render_mode != mode:
        env.close()
        raise CommandFailed(
            f"{environment.id} has no render mode {mode!r}, only {env.metadata.get('render_modes')}"
        )
    for wrapper in environment.wrappers:
        env = load_wrapper(wrapper)(env)
    return env


def make_agent(
    config: RunConfig, env: VectorEnv[Any, Any, Any], model: Path | None
) -> "batchppo.BatchPPO":
    """Return an agent for these environments: the one in the model file, or a new one."""
    with silent_tensorflow():
        agent_class = batchppo.BatchPPO
    if model is not None:
        loaded: batchppo.BatchPPO = agent_class.load(model, env=env)
        return loaded
    policy = suitable_policy(env.single_observation_space, env.single_action_space)
    return agent_class(**{"policy": policy, **config.agent}, env=env, seed=config.seed)


def load_policy(model: Path, seed: int | None = None) -> "batchppo.Policy":
    """Return what acts for the model in a file; only convolutions load TensorFlow for it."""
    with silent_tensorflow():
        return batchppo.load_policy(model, seed=seed)


def recall(choice: Choice) -> tuple[Path, EnvConfig]:
    """Return the model file that is meant, and the environment to use it in.

    Raises:
        BadInput: There is no such model, or its environment is not known.
    """
    found = find_model(choice)
    if choice.env_id is not None:
        return found.path, EnvConfig(id=choice.env_id)
    if found.run is None:
        raise BadInput(
            f"{found.path} is not in a run folder, so its environment is not known: name it with "
            "--env ID"
        )
    return found.path, RunConfig.load(found.run.config).environment


def _make_vector_env(
    environment: EnvConfig, num_envs: int, num_workers: int | None
) -> VectorEnv[Any, Any, Any]:
    import_modules(environment.imports)
    return batchgym.make_vec(
        silent_in_workers(find_spec(environment.id)),
        num_envs,
        num_workers=num_workers,
        owner_steps=None,
        autoreset_mode=AutoresetMode.SAME_STEP,  # no step is spent on a reset
        wrappers=tuple(load_wrapper(wrapper) for wrapper in environment.wrappers),
        **environment.kwargs,
    )
