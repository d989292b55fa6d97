"""What is registered with Gymnasium, and what an agent can be trained on."""

import contextlib
import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import gymnasium
from gymnasium.envs.registration import EnvSpec
from rich.table import Table
from rich.text import Text

from batchppo.actions import action_distribution
from batchppo.errors import SpaceError
from batchppo.observations import ObservationEncoder

from .console import messages, results
from .errors import CommandFailed
from .extras import require_extra_of
from .silence import register_atari, silence
from .space_text import brief
from .task import import_modules


@dataclass(frozen=True)
class Environment:
    """What is known of a registered environment.

    Attributes:
        id: Gymnasium id.
        observations: Observation space, or an empty text if the environment cannot be made.
        actions: Action space.
        problem: Why no agent can be trained on it; an empty text if one can.
    """

    id: str
    observations: str
    actions: str
    problem: str


def find_environments(
    pattern: str, every_version: bool, modules: Sequence[str]
) -> list[Environment]:
    """Make each registered environment whose id contains `pattern`, and look at its spaces."""
    import_modules(modules)
    register_atari()
    found = [
        spec
        for key, spec in gymnasium.registry.items()
        if pattern.casefold() in key.casefold()
        and not key.startswith("batchgym/")
        and (every_version or spec.version == _newest_version(spec))
    ]
    return [_look_at(spec) for spec in found]


def show(environments: Sequence[Environment], as_json: bool) -> None:
    """Print the environments: a table for people, JSON for programs."""
    console = results()
    if as_json:
        documents = [asdict(environment) for environment in environments]
        console.out(json.dumps(documents, indent=2), highlight=False)
        return
    if not environments:
        messages().print("no such environment is registered; --import MODULE registers more")
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("id", "observations", "actions", "can be trained on"):
        table.add_column(heading, overflow="fold")
    for environment in environments:
        verdict = Text(environment.problem or "yes", "yellow" if environment.problem else "green")
        table.add_row(environment.id, environment.observations, environment.actions, verdict)
    console.print(table)


def _newest_version(spec: EnvSpec) -> int | None:
    versions = [
        other.version or 0
        for other in gymnasium.registry.values()
        if (other.namespace, other.name) == (spec.namespace, spec.name)
    ]
    return max(versions) if spec.version is not None else None


def _look_at(spec: EnvSpec) -> Environment:
    try:
        require_extra_of(spec.id, spec.entry_point)
        silence(spec)
        with _without_warnings():
            env = gymnasium.make(spec)
    except CommandFailed as error:
        return Environment(spec.id, "", "", error.format_message().partition(": ")[2])
    except ModuleNotFoundError as error:
        return Environment(spec.id, "", "", f"needs {error.name}")
    except Exception as error:  # noqa: BLE001 - an environment may raise anything when made
        return Environment(spec.id, "", "", f"cannot be made: {type(error).__name__}")
    with contextlib.closing(env):
        observations, actions = env.observation_space, env.action_space
        problem = ""
        try:
            ObservationEncoder(observations)
            action_distribution(actions)
        except SpaceError:
            problem = "no: spaces"
        return Environment(spec.id, brief(observations), brief(actions), problem)


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
