"""One training from beginning to end, and what is left of it however it ends."""

import contextlib
import errno
import time
from collections.abc import Iterator

import numpy as np

import batchppo
from batchppo.callbacks import BaseCallback, CheckpointCallback

from .build import make_agent, make_evaluation_env, make_training_env, terminate
from .callbacks import Evaluate, ShowProgress
from .console import messages
from .outcome import Outcome
from .policy_choice import remark_on
from .process import exit_code, uninterrupted
from .progress import Display, make_display
from .run import Run

# Errors of writing that do not name the file.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def run_training(run: Run, progress: str) -> Outcome:
    """Train an agent and keep everything in the run folder.

    Args:
        run: What to train, and where.
        progress: How to show it: see `progress.make_display`.

    Returns:
        What became of it, also when Ctrl-C or SIGTERM ended it.
    """
    config, folder = run.config, run.folder
    with run.locked(), contextlib.ExitStack() as stack:
        with run.forgotten_on_error(), _waiting("Starting TensorFlow ...", progress):
            env = stack.enter_context(contextlib.closing(make_training_env(config)))
            agent = make_agent(config, env, run.model)
            if run.model is None and progress != "none" and "policy" not in config.agent:
                _remark(agent)
            eval_env = make_evaluation_env(config.environment, config.eval_episodes)
            stack.enter_context(contextlib.closing(eval_env))
            eval_env.reset(seed=_evaluation_seed(config.seed, run.timesteps))
            run.begin()
            logger = batchppo.configure_logger(folder.path, ("csv", "tensorboard"))
            agent.set_logger(stack.enter_context(contextlib.closing(logger)))
        display = make_display(
            messages(), config.task, config.total_timesteps, run.timesteps, progress
        )
        evaluate = Evaluate(eval_env, run, display)
        outcome = _learn(run, agent, evaluate, display)
        if outcome.exit_code:
            terminate(env)
            terminate(eval_env)
    return outcome


def _learn(run: Run, agent: "batchppo.BatchPPO", evaluate: Evaluate, display: Display) -> Outcome:
    start = time.monotonic()
    interrupt = None
    try:
        with _saved(agent, run), display:
            agent.learn(
                run.config.total_timesteps - run.timesteps,
                callback=[evaluate, ShowProgress(display), *_checkpoints(run)],
                reset_num_timesteps=run.model is None,
            )
            evaluate.finish()
    except KeyboardInterrupt as error:
        interrupt = error
    seconds = time.monotonic() - start
    return Outcome(
        task=run.config.task,
        folder=run.folder.path,
        seed=run.config.seed,
        timesteps=agent.num_timesteps,
        seconds=seconds,
        steps_per_second=(agent.num_timesteps - run.timesteps) / seconds,
        evaluations=tuple(evaluate.results),
        exit_code=exit_code(interrupt) if interrupt else 0,
    )


def _checkpoints(run: Run) -> list[BaseCallback]:
    every = run.config.checkpoint_every
    return [CheckpointCallback(every, run.folder.checkpoints, "model")] if every else []


def _remark(agent: "batchppo.BatchPPO") -> None:
    """Print what is remarkable about a policy that nobody has chosen."""
    remark = remark_on(agent.policy_name, agent.observation_space)
    if remark is not None:
        messages().print(remark, soft_wrap=True)


def _evaluation_seed(seed: int, timesteps: int) -> int:
    """Return a seed for the evaluations, other than those of the environments of the training."""
    return int(np.random.SeedSequence([seed, timesteps, 1]).generate_state(1)[0])


@contextlib.contextmanager
def _saved(agent: "batchppo.BatchPPO", run: Run) -> Iterator[None]:
    """Save the agent at the end of this context, also after an interrupt or an error."""
    path = run.folder.model
    try:
        yield
    except Exception as error:
        # After an error the agent may not be what it should be: an older file of it stays.
        if not path.exists():
            with contextlib.suppress(OSError):  # the error may be that nothing can be written
                agent.save(path)
        if path.exists():
            messages().print(f"The agent so far is kept in {path}.", soft_wrap=True)
        if isinstance(error, OSError) and error.errno in _NO_ROOM and error.filename is None:
            raise OSError(error.errno, error.strerror, str(run.folder.path)) from error
        raise
    except KeyboardInterrupt:
        with uninterrupted():
            agent.save(path)
        raise
    agent.save(path)


@contextlib.contextmanager
def _waiting(text: str, progress: str) -> Iterator[None]:
    """Show that something is going on, on a terminal."""
    console = messages()
    if progress == "none" or not console.is_terminal:
        yield
        return
    with console.status(text):
        yield
