"""Models saved now and then."""

from __future__ import annotations

import os
from pathlib import Path

from batchppo.callback import BaseCallback, Every


class CheckpointCallback(BaseCallback):
    """Saves the model every `save_freq` environment steps, statistics and optimizer included.

    Args:
        save_freq: environment steps between two checkpoints.
        save_path: the folder, made if missing.
        name_prefix: files are called `<name_prefix>_<environment steps>_steps.zip`.
        verbose: 0 for silence, 1 for a line per checkpoint.
    """

    def __init__(
        self,
        save_freq: int,
        save_path: str | os.PathLike[str],
        name_prefix: str = "rl_model",
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose)
        self.save_freq = save_freq
        self.save_path = Path(save_path)
        self.name_prefix = name_prefix
        self._every = Every(save_freq)

    def _on_training_start(self) -> None:
        self._every.start(self.num_timesteps)

    def _on_step(self) -> bool:
        if self._every.due(self.num_timesteps):
            path = self.save_path / f"{self.name_prefix}_{self.num_timesteps}_steps.zip"
            self.model.save(path)
            if self.verbose:
                print(f"Saved {path}")  # noqa: T201 - verbose=1 asks for it
        return True
