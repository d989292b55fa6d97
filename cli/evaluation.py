"""Playing episodes with trained agents, and telling the result."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

import batchppo

from .build import closing, load_policy, make_evaluation_env, recall
from .console import results
from .fitting import require_fitting
from .formatting import significant
from .outcome import Evaluation
from .run_folder import Choice


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
    console.print(_table(scores, with_run=not is_one_model))


def _table(scores: Sequence[Score], with_run: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    if with_run:
        table.add_column("run", overflow="fold")
        table.add_column("steps", justify="right")
    table.add_column("actions")
    for heading in ("episodes", "mean return", "std", "95 % interval", "length"):
        table.add_column(heading, justify="right")
    for score in scores:
        result = score.result
        low, high = result.interval
        row: list[Text | str] = [
            score.actions,
            str(len(result.returns)),
            Text(significant(result.mean), "bold"),
            significant(result.std),
            f"{significant(low)} to {significant(high)}",
            significant(float(np.mean(result.lengths))),
        ]
        table.add_row(*([score.run, f"{result.timesteps:,}"] if with_run else []), *row)
    return table
