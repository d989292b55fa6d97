"""All callbacks, in one place to import from."""

from batchppo.callback import (
    BaseCallback,
    CallbackLike,
    CallbackList,
    ConvertCallback,
    EventCallback,
    EveryNTimesteps,
    LogEveryNTimesteps,
    as_callback,
)
from batchppo.checkpoint_callback import CheckpointCallback
from batchppo.evaluation_callback import EvalCallback
from batchppo.progress_callback import ProgressBarCallback
from batchppo.stopping import (
    StopTrainingOnMaxEpisodes,
    StopTrainingOnNoModelImprovement,
    StopTrainingOnRewardThreshold,
)

__all__ = [
    "BaseCallback",
    "CallbackLike",
    "CallbackList",
    "CheckpointCallback",
    "ConvertCallback",
    "EvalCallback",
    "EventCallback",
    "EveryNTimesteps",
    "LogEveryNTimesteps",
    "ProgressBarCallback",
    "StopTrainingOnMaxEpisodes",
    "StopTrainingOnNoModelImprovement",
    "StopTrainingOnRewardThreshold",
    "as_callback",
]
