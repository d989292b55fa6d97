"""Searching for hyperparameters: trials, and what is kept of them."""

import contextlib
import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import JournalStorage
from rich.console import Console

import batchppo
from batchppo.errors import NonFiniteError

from .build import closing, make_agent, make_evaluation_env, make_training_env
from .callbacks import EvaluateToTheEnd
from .console import messages, results
from .errors import BadInput
from .files import write_text
from .formatting import significant
from .presets import PRESETS
from .run_config import RunConfig
from .search_space import suggest
from .study_file import open_journal
from .toml import to_toml

# Trials that run to their end before others are measured by them, and the part of a trial that
# comes before it can be ended early.
_FIRST_TRIALS = 5
_FIRST_PART = 0.3
_SETTINGS = "settings"


@dataclass(frozen=True)
class Search:
    """What to search for, and where the trials are kept.

    Attributes:
        config: The task; what a trial does not suggest stays as it is here.
        fixed: Arguments of the agent that are not searched for.
        folder: Where the study is, or will be.
    """

    config: RunConfig
    fixed: Mapping[str, Any]
    folder: Path

    @property
    def best_file(self) -> Path:
        """The best settings so far, for `train --config`."""
        return self.folder / "best.toml"

    def settings(self) -> dict[str, Any]:
        """Return what all trials of a study have in common, as JSON values."""
        names = ("environment", "total_timesteps", "num_envs", "eval_episodes")
        own = dataclasses.asdict(self.config)
        common = {**{name: own[name] for name in names}, "fixed": dict(self.fixed)}
        document: dict[str, Any] = json.loads(json.dumps(common))
        return document


def search(what: Search, trials: int, as_json: bool) -> None:
    """Make trials until the study has as many as were asked for, and tell the best.

    Args:
        what: What to search for.
        trials: Trials that the study has in the end.
        as_json: Whether to print the result as JSON.

    Raises:
        BadInput: The study was begun with other settings.
    """
    what.folder.mkdir(parents=True, exist_ok=True)
    console = messages()
    with open_journal(what.folder / "study.log") as storage:
        study = _open_study(what, storage)
        finished = len(_finished(study))
        if finished:
            console.print(f"{what.folder} has {finished} trials already.", soft_wrap=True)
        with console.status("") as status:
            study.optimize(
                _objective(what, lambda number: status.update(f"Trial {number} of {trials} ...")),
                n_trials=max(0, trials - finished),
                callbacks=[lambda study, trial: _tell(what, study, trial, console)],
            )
        _show(what, study, as_json)


def _open_study(what: Search, storage: JournalStorage) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # what ends a trial is told here
    config = what.config
    study = optuna.create_study(
        storage=storage, study_name=config.task, direction="maximize", load_if_exists=True
    )
    _require_same_settings(study, what)
    # A study that goes on must not suggest the same once more.
    study.sampler = optuna.samplers.TPESampler(seed=config.seed + len(study.trials))
    study.pruner = optuna.pruners.MedianPruner(
        n_startup_trials=_FIRST_TRIALS, n_warmup_steps=int(_FIRST_PART * config.total_timesteps)
    )
    return study


def _require_same_settings(study: optuna.Study, what: Search) -> None:
    """Raise BadInput if trials of this study would not be comparable with those it has."""
    settings = what.settings()
    begun = study.user_attrs.get(_SETTINGS)
    if begun is None:
        study.set_user_attr(_SETTINGS, settings)
        return
    for name, value in settings.items():
        if begun.get(name) != value:
            raise BadInput(
                f"{what.folder} was begun with {name} {begun.get(name)}, not {value}: go on with "
                "the same, or begin another study with --logdir"
            )


def _objective(what: Search, announce: Callable[[int], None]) -> Callable[[optuna.Trial], float]:
    config = what.config

    def objective(trial: optuna.Trial) -> float:
        announce(trial.number)
        suggested = suggest(trial, config.num_envs)
        kwargs = {**suggested["policy_kwargs"], **what.fixed.get("policy_kwargs", {})}
        agent = {**config.agent, **suggested, **what.fixed, "policy_kwargs": kwargs}
        return _run_trial(dataclasses.replace(config, agent=agent), trial)

    return objective


def _run_trial(config: RunConfig, trial: optuna.Trial) -> float:
    """Train once, and return the mean return of the last evaluation."""
    trial.set_user_attr("agent", dict(config.agent))
    with contextlib.ExitStack() as stack:
        env = stack.enter_context(closing(make_training_env(config)))
        eval_env = make_evaluation_env(config.environment, config.eval_episodes)
        stack.enter_context(closing(eval_env))
        eval_env.reset(seed=config.seed)
        agent = make_agent(config, env, None)
        agent.set_logger(batchppo.Logger(None, []))
        watch = _Watch(trial, eval_env, config)
        try:
            agent.learn(config.total_timesteps, callback=watch)
        except NonFiniteError as error:
            raise optuna.TrialPruned(str(error)) from error
        if watch.is_hopeless:
            raise optuna.TrialPruned
        watch.finish()
        return float(watch.last_mean_reward)


class _Watch(EvaluateToTheEnd):
    """Reports each evaluation to the trial, and ends the training of a hopeless one."""

    def __init__(self, trial: optuna.Trial, env: Any, config: RunConfig) -> None:
        super().__init__(env, config)
        self.is_hopeless = False
        self._trial = trial

    def evaluate(self) -> bool:
        """Evaluate now; return False if the trial is hopeless."""
        go_on = super().evaluate()
        self._trial.report(float(self.last_mean_reward), self.num_timesteps)
        self.is_hopeless = self._trial.should_prune()
        return go_on and not self.is_hopeless


def _finished(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    states = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)
    return study.get_trials(deepcopy=False, states=states)


def _best(study: optuna.Study) -> optuna.trial.FrozenTrial | None:
    complete = study.get_trials(states=(optuna.trial.TrialState.COMPLETE,))
    return max(complete, key=lambda trial: trial.values[0], default=None)


def _tell(
    what: Search, study: optuna.Study, trial: optuna.trial.FrozenTrial, console: Console
) -> None:
    """Keep the best settings so far, and print what became of a trial."""
    best = _best(study)
    if best is not None:
        write_text(what.best_file, _settings_file(what.config, best))
    if trial.state == optuna.trial.TrialState.PRUNED:
        steps = max(trial.intermediate_values, default=0)
        console.print(f"trial {trial.number}: ended after {steps:,} steps")
    elif trial.value is not None:
        is_best = best is not None and best.number == trial.number
        note = ", the best so far" if is_best else ""
        console.print(f"trial {trial.number}: mean return {significant(trial.value)}{note}")


def _settings_file(config: RunConfig, best: optuna.trial.FrozenTrial) -> str:
    comment = f"# Trial {best.number} of a search: mean return {significant(best.value or 0.0)}.\n"
    environment = dataclasses.asdict(config.environment)
    return comment + to_toml(
        {
            # As the command line names it: the name of the folder is no id where that has a
            # namespace or a module.
            "task": config.task if config.task in PRESETS else config.environment.id,
            "total_timesteps": config.total_timesteps,
            "num_envs": config.num_envs,
            "environment": {name: value for name, value in environment.items() if value},
            "agent": best.user_attrs["agent"],
        }
    )


def _show(what: Search, study: optuna.Study, as_json: bool) -> None:
    best = _best(study)
    console = results()
    if as_json:
        document = {
            "trials": len(_finished(study)),
            "best": None if best is None else {"mean": best.value, **best.user_attrs},
            "file": None if best is None else str(what.best_file),
        }
        console.out(json.dumps(document, indent=2), highlight=False)
        return
    if best is None:
        messages().print("No trial has ended well yet.")
        return
    console.print(f"\nbest of {len(_finished(study))} trials of {what.config.task}\n")
    console.print(_settings_file(what.config, best), soft_wrap=True)
    console.print(f"next\n  batchppo train --config {what.best_file} --seeds 0-4", soft_wrap=True)
