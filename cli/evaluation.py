"""Playing episodes with trained agents, and telling the result."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.text import Text

import batchppo

from .build import closing, load_policy, make_evaluation_env, recall
from .console import results
from .fitting import require_fitting
from .formatting import significant
from .outcome import Evaluation
from .run_folder import Choice
from .tables import print_rows


@dataclass(frozen=True)
class Score:
    """How well one agent did, with one way of choosing actions.

    Attributes:
        run: What was evaluated, as the command line named it.
        model: Path of the model file.
        env_id: Environment it was evaluated in.
        actions: "deterministic" or "stochastic".
        seed: Seed of the environments.
        result: How it did, and how long it had been trained.
    """

    run: str
    model: str
    env_id: str
    actions: str
    seed: int
    result: Evaluation

    def to_json(self) -> dict[str, Any]:
        """Return the score as JSON values."""
        values = asdict(self)
        result = values.pop("result")
        summary = {"mean": self.result.mean, "std": self.result.std}
        return {**values, **result, **summary, "interval": self.result.interval}


def evaluate(choice: Choice, episodes: int, seed: int, stochastic: bool) -> Iterator[Score]:
    """Play episodes with an agent; yield one score for each kind of actions."""
    model, environment = recall(choice)
    policy = load_policy(model, seed)
    for deterministic in (True, False) if stochastic else (True,):
        with closing(make_evaluation_env(environment, episodes)) as env:
            require_fitting(
                policy, model, environment.id, env.single_observation_space, env.single_action_space
            )
            returns, lengths = batchppo.evaluate_policy(
                policy,
                env,
                episodes,
                deterministic=deterministic,
                return_episode_rewards=True,
                seed=seed,
            )
        yield Score(
            run=choice.run,
            model=str(model),
            env_id=environment.id,
            actions="deterministic" if deterministic else "stochastic",
            seed=seed,
            result=Evaluation(
                policy.metadata["num_timesteps"],
                tuple(map(float, returns)),
                tuple(map(int, lengths)),
            ),
        )


def show(scores: Sequence[Score], as_json: bool) -> None:
    """Print the scores: a table for people, or JSON for programs."""
    console = results()
    if as_json:
        document = [score.to_json() for score in scores]
        console.out(json.dumps(document, indent=2), highlight=False)
        return
    is_one_model = len({score.model for score in scores}) == 1
    if is_one_model:
        first = scores[0]
        console.print(
            Text.assemble(
                (first.env_id, "bold"),
                f"  {first.model}, trained for {first.result.timesteps:,} steps",
            ),
            soft_wrap=True,
        )
    rows = [_row(score, with_run=not is_one_model) for score in scores]
    print_rows(console, rows, texts=("run", "actions"), folded=None if is_one_model else "run")


def _row(score: Score, with_run: bool) -> dict[str, str | Text]:
    result = score.result
    low, high = result.interval
    run = {"run": score.run, "steps": f"{result.timesteps:,}"}
    return {
        **(run if with_run else {}),
        "actions": score.actions,
        "episodes": f"{len(result.returns):,}",
        "mean return": Text(significant(result.mean), "bold"),
        "std": significant(result.std),
        "95 % interval": f"{significant(low)} to {significant(high)}",
        "length": significant(float(np.mean(result.lengths))),
    }
