"""Callbacks: what a user hooks into training, with Stable-Baselines3's names.

Every frequency counts environment steps, whatever the number of environments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv

    from batchppo.logger import Logger
    from batchppo.ppo import BatchPPO

CallbackFunction: TypeAlias = Callable[[dict[str, Any], dict[str, Any]], bool | None]
CallbackLike: TypeAlias = "BaseCallback | Sequence[BaseCallback] | CallbackFunction | None"


class BaseCallback:
    """Hooks into training; override those that start with an underscore.

    Args:
        verbose: 0 for silence, 1 for messages.

    Attributes:
        model: the agent, from `init_callback` on.
        n_calls: how often `on_step` was called: once per step of the vector environment.
        num_timesteps: environment steps made so far.
        locals: what the training loop knows: `actions, rewards, dones, infos, new_obs, valid`
            in `_on_step`.
        parent: the callback that calls this one, if any.
    """

    model: BatchPPO

    def __init__(self, verbose: int = 0) -> None:
        self.verbose = verbose
        self.n_calls = 0
        self.num_timesteps = 0
        self.locals: dict[str, Any] = {}
        self.globals: dict[str, Any] = {}
        self.parent: BaseCallback | None = None

    @property
    def training_env(self) -> VectorEnv[Any, Any, Any]:
        """The vector environment that is trained in."""
        env = self.model.get_env()
        if env is None:
            raise ValueError("the model has no environment; give one with set_env")
        return env

    @property
    def logger(self) -> Logger:
        """The model's logger."""
        return self.model.logger

    def init_callback(self, model: BatchPPO) -> None:
        """Takes the agent and calls `_init_callback`."""
        self.model = model
        self._init_callback()

    def on_training_start(self, locals_: dict[str, Any], globals_: dict[str, Any]) -> None:
        """Called before the first rollout of `learn`."""
        self.locals, self.globals = locals_, globals_
        self.num_timesteps = self.model.num_timesteps
        self._on_training_start()

    def on_rollout_start(self) -> None:
        """Called before each rollout."""
        self._on_rollout_start()

    def on_step(self) -> bool:
        """Called after each step of the vector environment; False ends training."""
        self.n_calls += 1
        self.num_timesteps = self.model.num_timesteps
        return self._on_step()

    def on_rollout_end(self) -> None:
        """Called between each rollout and its update."""
        self._on_rollout_end()

    def on_training_end(self) -> None:
        """Called when `learn` ends, also by an exception."""
        self._on_training_end()

    def update_locals(self, locals_: dict[str, Any]) -> None:
        """Merges what the training loop knows into `locals`."""
        self.locals.update(locals_)
        self.update_child_locals(locals_)

    def update_child_locals(self, locals_: dict[str, Any]) -> None:
        """Passes `locals_` on to the callbacks that this one calls."""

    def _init_callback(self) -> None:
        """Override: the agent is known."""

    def _on_training_start(self) -> None:
        """Override: before the first rollout."""

    def _on_rollout_start(self) -> None:
        """Override: before each rollout."""

    def _on_step(self) -> bool:
        """Override: after each step of the vector environment; return False to end training."""
        return True

    def _on_rollout_end(self) -> None:
        """Override: between each rollout and its update."""

    def _on_training_end(self) -> None:
        """Override: `learn` ends."""


class CallbackList(BaseCallback):
    """Calls several callbacks in order; training ends if any of them says so.

    Args:
        callbacks: the callbacks.
    """

    def __init__(self, callbacks: Sequence[BaseCallback]) -> None:
        super().__init__()
        self.callbacks = list(callbacks)

    def update_child_locals(self, locals_: dict[str, Any]) -> None:
        """Passes `locals_` on to each of them."""
        for callback in self.callbacks:
            callback.update_locals(locals_)

    def _init_callback(self) -> None:
        for callback in self.callbacks:
            callback.parent = self.parent
            callback.init_callback(self.model)

    def _on_training_start(self) -> None:
        for callback in self.callbacks:
            callback.on_training_start(self.locals, self.globals)

    def _on_rollout_start(self) -> None:
        for callback in self.callbacks:
            callback.on_rollout_start()

    def _on_step(self) -> bool:
        go_on = True
        for callback in self.callbacks:  # all of them, also behind one that ends training
            go_on = callback.on_step() and go_on
        return go_on

    def _on_rollout_end(self) -> None:
        for callback in self.callbacks:
            callback.on_rollout_end()

    def _on_training_end(self) -> None:
        for callback in self.callbacks:
            callback.on_training_end()


class ConvertCallback(BaseCallback):
    """Makes a function of (locals, globals) a callback; it returns False to end training.

    Args:
        callback: the function.
        verbose: 0 for silence, 1 for messages.
    """

    def __init__(self, callback: CallbackFunction, verbose: int = 0) -> None:
        super().__init__(verbose)
        self.callback = callback

    def _on_step(self) -> bool:
        return self.callback(self.locals, self.globals) is not False


class EventCallback(BaseCallback):
    """Calls another callback on an event.

    Args:
        callback: what to call; None for nothing.
        verbose: 0 for silence, 1 for messages.
    """

    def __init__(self, callback: BaseCallback | None = None, verbose: int = 0) -> None:
        super().__init__(verbose)
        self.callback = callback
        if callback is not None:
            callback.parent = self

    def init_callback(self, model: BatchPPO) -> None:
        """Takes the agent, for the other callback too."""
        super().init_callback(model)
        if self.callback is not None:
            self.callback.init_callback(model)

    def update_child_locals(self, locals_: dict[str, Any]) -> None:
        """Passes `locals_` on."""
        if self.callback is not None:
            self.callback.update_locals(locals_)

    def _on_training_start(self) -> None:
        if self.callback is not None:
            self.callback.on_training_start(self.locals, self.globals)

    def _on_training_end(self) -> None:
        if self.callback is not None:
            self.callback.on_training_end()

    def _on_event(self) -> bool:
        return self.callback.on_step() if self.callback is not None else True


class Every:
    """Tells when another `interval` of environment steps is full.

    Args:
        interval: how many steps.
    """

    def __init__(self, interval: int) -> None:
        if interval < 1:
            raise ValueError(f"a frequency must be at least 1 environment step, got {interval}")
        self._interval = interval
        self._passed = 0

    def start(self, step: int) -> None:
        """Begins at an environment step; multiples of the interval behind it count."""
        self._passed = step // self._interval

    def due(self, step: int) -> bool:
        """Returns whether a multiple of the interval was reached since it last was."""
        passed = step // self._interval
        due, self._passed = passed > self._passed, passed
        return due


class EveryNTimesteps(EventCallback):
    """Calls a callback every `n_steps` environment steps.

    Args:
        n_steps: environment steps between two calls.
        callback: what to call.
    """

    def __init__(self, n_steps: int, callback: BaseCallback) -> None:
        super().__init__(callback)
        self.n_steps = n_steps
        self._every = Every(n_steps)

    def _on_training_start(self) -> None:
        self._every.start(self.num_timesteps)
        super()._on_training_start()

    def _on_step(self) -> bool:
        return self._on_event() if self._every.due(self.num_timesteps) else True


class LogEveryNTimesteps(EveryNTimesteps):
    """Writes what the logger has every `n_steps` environment steps, also within a rollout.

    Args:
        n_steps: environment steps between two log entries; best with `learn(log_interval=None)`.
    """

    def __init__(self, n_steps: int) -> None:
        super().__init__(n_steps, BaseCallback())

    def _on_event(self) -> bool:
        for key, value in self.model.episodes.figures().items():
            self.logger.record(key, value)
        self.logger.record("time/total_timesteps", self.num_timesteps)
        self.logger.dump(self.num_timesteps)
        return True


def as_callback(callback: CallbackLike) -> BaseCallback | None:
    """Returns a callback, a list of callbacks or a function as one callback; None for None.

    Raises:
        TypeError: something else.
    """
    if callback is None or isinstance(callback, BaseCallback):
        return callback
    if callable(callback):
        return ConvertCallback(callback)
    if isinstance(callback, Sequence) and all(isinstance(c, BaseCallback) for c in callback):
        return CallbackList(callback)
    raise TypeError(
        f"callback must be a BaseCallback, a list of them or a function of (locals, globals); got "
        f"{callback!r}"
    )
