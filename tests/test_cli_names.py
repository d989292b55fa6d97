"""Tasks, near misses, wrappers, numbers: what is written on the command line."""

import gymnasium
import pytest
from batchppo_cli.errors import BadInput
from batchppo_cli.formatting import duration, mean_and_std, significant
from batchppo_cli.options import COUNT, RETURN, SECONDS, SEED
from batchppo_cli.presets import PRESETS
from batchppo_cli.suggestions import did_you_mean, nearest
from batchppo_cli.task import find_task
from batchppo_cli.wrappers import load_wrapper
from click import BadParameter


def test_a_preset_is_a_task() -> None:
    task = find_task("cartpole")
    assert (task.name, task.preset) == ("cartpole", PRESETS["cartpole"])


def test_an_id_is_a_task_with_the_agents_own_defaults() -> None:
    task = find_task("Acrobot-v1")
    assert (task.name, task.preset.env_id) == ("Acrobot-v1", "Acrobot-v1")
    assert task.preset.agent == {}


def test_an_id_may_name_its_module_and_have_a_namespace() -> None:
    gymnasium.register("space/Thing-v0", entry_point="nowhere:Thing")
    task = find_task("json:space/Thing-v0")
    assert (task.name, task.preset.env_id) == ("space-Thing-v0", "json:space/Thing-v0")
    del gymnasium.registry["space/Thing-v0"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("cartpol", "Did you mean cartpole"),
        ("Cartpole-v1", "Did you mean CartPole-v1"),
        ("CartPole", "CartPole-v1"),
        ("HalfCheeta-v5", "HalfCheetah-v5"),
        ("qqqqqq", "--import"),
        ("no_such_module:Thing-v0", "cannot import 'no_such_module'"),
    ],
)
def test_an_unknown_task_names_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(BadInput) as caught:
        find_task(name)
    assert hint in caught.value.format_message()


def test_near_misses() -> None:
    known = ["alpha", "Alphabet", "beta"]
    assert nearest("btea", known) == ["beta"]
    assert nearest("ALPHA", known) == ["alpha", "Alphabet"]
    assert nearest("", known) == []
    assert did_you_mean("bet", known) == " Did you mean beta or Alphabet?"
    assert did_you_mean("zzz", known) == ""


@pytest.mark.parametrize(
    ("text", "number"), [("100", 100), ("100_000", 100_000), ("1e5", 100_000), ("2.5e3", 2500)]
)
def test_counts(text: str, number: int) -> None:
    assert COUNT.convert(text, None, None) == number


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "many", "", "inf", "nan"])
def test_what_is_no_count(text: str) -> None:
    with pytest.raises(BadParameter):
        COUNT.convert(text, None, None)


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "high", "", "1e999"])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(BadParameter, match="is not a number"):
        RETURN.convert(text, None, None)


def test_a_number_may_have_bounds() -> None:
    assert RETURN.convert("-1e3", None, None) == -1000.0
    assert SECONDS.convert("0.5", None, None) == 0.5
    with pytest.raises(BadParameter, match="must be above 0"):
        SECONDS.convert("0", None, None)
    with pytest.raises(BadParameter, match="must be at most 3600"):
        SECONDS.convert("3601", None, None)


def test_seeds_have_a_largest_one() -> None:
    assert SEED.convert("0", None, None) == 0
    with pytest.raises(BadParameter, match="at most 4294967295"):
        SEED.convert("4294967296", None, None)


def test_a_wrapper_of_gymnasium_needs_no_module() -> None:
    env = load_wrapper("TimeLimit(max_episode_steps=3)")(gymnasium.make("CartPole-v1"))
    env.reset(seed=0)
    assert [env.step(0)[3] for _ in range(3)] == [False, False, True]
    env.close()


def test_a_wrapper_without_arguments() -> None:
    wrapped = load_wrapper("gymnasium.wrappers:RecordEpisodeStatistics")(
        gymnasium.make("CartPole-v1")
    )
    assert isinstance(wrapped, gymnasium.wrappers.RecordEpisodeStatistics)
    wrapped.close()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("TimeLimt", "Did you mean TimeLimit"),
        ("nowhere:Thing", "cannot import 'nowhere'"),
        ("TimeLimit(3)", "is not of the form"),
        ("TimeLimit(a=3", "is not of the form"),
        ("TimeLimit(a=print(1))", "is not of the form"),
        ("TimeLimit(**{})", "is not of the form"),
    ],
)
def test_what_is_no_wrapper(text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        load_wrapper(text)
    assert message in caught.value.format_message()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (500.0, "500.0"),
        (-193.456, "-193.5"),
        (12.345, "12.35"),
        (0.12345, "0.1235"),
        (0.00001, "0.0000"),
        (4321.9, "4,322"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
    ],
)
def test_numbers_have_about_four_digits(value: float, text: str) -> None:
    assert significant(value) == text


def test_a_deviation_is_as_exact_as_its_mean() -> None:
    assert mean_and_std(177.23, 69.574) == "177.2 ± 69.6"
    assert mean_and_std(4321.9, 12.6) == "4,322 ± 13"
    assert mean_and_std(0.0, 0.04) == "0.0 ± 0.0"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.6, "1 min 00 s"), (125, "2 min 05 s"), (11_222, "3 h 07 min")],
)
def test_time_spans(seconds: float, text: str) -> None:
    assert duration(seconds) == text
