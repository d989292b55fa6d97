"""What became of a training."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Evaluation:
    """The result of one evaluation during training.

    Attributes:
        timesteps: Environment steps trained for by then.
        mean: Mean return.
        std: Standard deviation of the returns.
    """

    timesteps: int
    mean: float
    std: float


@dataclass(frozen=True)
class Outcome:
    """What became of a training.

    Attributes:
        task: What was trained on.
        folder: The run folder.
        seed: Seed of the run.
        timesteps: Environment steps of the agent in the end.
        seconds: How long the training took, evaluations included, start-up not.
        steps_per_second: Environment steps of this training by its seconds.
        evaluations: All evaluations, in order.
        exit_code: 0, or that of the signal that ended the training before its time.
    """

    task: str
    folder: Path
    seed: int
    timesteps: int
    seconds: float
    steps_per_second: float
    evaluations: tuple[Evaluation, ...]
    exit_code: int

    @property
    def last(self) -> Evaluation | None:
        """The last evaluation."""
        return self.evaluations[-1] if self.evaluations else None

    @property
    def best(self) -> Evaluation | None:
        """The first of the best evaluations, which `best_model.zip` belongs to."""
        return max(self.evaluations, key=lambda evaluation: evaluation.mean, default=None)
