"""One training from beginning to end, and what is left of it however it ends."""

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import batchppo

from .about import about_this_run
from .build import make_agent, make_evaluation_env, make_training_env
from .callbacks import Evaluate, ShowProgress
from .console import messages
from .outcome import Outcome
from .process import exit_code, terminate_like_interrupt, uninterrupted
from .progress import Display, make_display
from .run_config import RunConfig
from .run_folder import RunFolder


def run_training(config: RunConfig, logdir: Path, progress: str) -> Outcome:
    """Train an agent and keep everything in a new run folder.

    Args:
        config: What to train, and how.
        logdir: Where run folders are.
        progress: How to show it: see `progress.make_display`.

    Returns:
        What became of it, also when Ctrl-C or SIGTERM ended it.
    """
    folder = RunFolder.create(logdir, config.task)
    with terminate_like_interrupt(), contextlib.ExitStack() as stack:
        with _removed_on_error(folder), _waiting("Starting TensorFlow ...", progress):
            config.save(folder.config, about_this_run())
            env = stack.enter_context(contextlib.closing(make_training_env(config)))
            agent = make_agent(config, env)
            logger = batchppo.configure_logger(folder.path, ("csv", "tensorboard"))
            agent.set_logger(stack.enter_context(contextlib.closing(logger)))
            eval_env = make_evaluation_env(config.environment, config.eval_episodes)
            stack.enter_context(contextlib.closing(eval_env))
        display = make_display(messages(), config.task, config.total_timesteps, progress)
        evaluate = Evaluate(
            eval_env,
            config.eval_every,
            config.eval_episodes,
            config.total_timesteps,
            folder,
            display,
        )
        return _learn(config, folder, agent, evaluate, display)


def _learn(
    config: RunConfig,
    folder: RunFolder,
    agent: batchppo.BatchPPO,
    evaluate: Evaluate,
    display: Display,
) -> Outcome:
    start = time.monotonic()
    interrupt = None
    try:
        with display, _saved(agent, folder):
            agent.learn(config.total_timesteps, callback=[evaluate, ShowProgress(display)])
            evaluate.finish()
    except KeyboardInterrupt as error:
        interrupt = error
    seconds = time.monotonic() - start
    return Outcome(
        task=config.task,
        folder=folder.path,
        seed=config.seed,
        timesteps=agent.num_timesteps,
        seconds=seconds,
        steps_per_second=agent.num_timesteps / seconds,
        evaluations=tuple(evaluate.results),
        exit_code=exit_code(interrupt) if interrupt else 0,
    )


@contextlib.contextmanager
def _saved(agent: batchppo.BatchPPO, folder: RunFolder) -> Iterator[None]:
    """Save the agent at the end of this context, also after an interrupt or an error."""
    try:
        yield
    except Exception:
        # After an error the agent may not be what it should be: an older file of it stays.
        if not folder.model.exists():
            agent.save(folder.model)
        messages().print(f"The agent so far is kept in {folder.path}.", soft_wrap=True)
        raise
    except KeyboardInterrupt:
        with uninterrupted():
            agent.save(folder.model)
        raise
    agent.save(folder.model)


@contextlib.contextmanager
def _removed_on_error(folder: RunFolder) -> Iterator[None]:
    """Remove the folder of a run that did not even begin."""
    try:
        yield
    except BaseException:
        shutil.rmtree(folder.path)
        raise


@contextlib.contextmanager
def _waiting(text: str, progress: str) -> Iterator[None]:
    """Show that something is going on, on a terminal."""
    console = messages()
    if progress == "none" or not console.is_terminal:
        yield
        return
    with console.status(text):
        yield
