"""`evaluations.json`: what is saved is loaded, what is damaged is named."""

from pathlib import Path

import pytest
from batchppo_cli.errors import BadInput
from batchppo_cli.outcome import Evaluation, best_of, load_evaluations, save_evaluations

RESULTS = [Evaluation(100, (1.0, 3.0), (5, 6)), Evaluation(200, (2.0,), (7,))]


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    save_evaluations(tmp_path / "e.json", RESULTS)
    assert load_evaluations(tmp_path / "e.json") == RESULTS
    assert load_evaluations(tmp_path / "nothing.json") == []
    assert best_of(RESULTS) == RESULTS[0], "the first of equally good ones"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"e\.json: not a JSON file"),
        ("{}", r"e\.json: expected a list of evaluations, got \{\}"),
        ("[3]", r"e\.json, evaluation 1: expected an object with timesteps, returns, lengths"),
        ('[{"timesteps": 1}]', "expected an object with timesteps, returns, lengths"),
        ('[{"timesteps": "1", "returns": [1], "lengths": [1]}]', "timesteps must be a whole"),
        ('[{"timesteps": 1, "returns": "abc", "lengths": [1]}]', "returns must be a list"),
        ('[{"timesteps": 1, "returns": [], "lengths": [1]}]', "returns must be a list"),
        ('[{"timesteps": 1, "returns": [1], "lengths": [null]}]', "lengths must be a list"),
    ],
)
def test_what_is_damaged_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "e.json").write_text(text)
    with pytest.raises(BadInput, match=message):
        load_evaluations(tmp_path / "e.json")
