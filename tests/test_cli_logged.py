"""Reading `progress.csv`: what is damaged is named, what is not there yet is not missed."""

from pathlib import Path

import pytest
from batchppo_cli.errors import BadInput
from batchppo_cli.logged import read_metric

HEAD = "time/total_timesteps,a,b\n"


def read(folder: Path, text: str | bytes) -> tuple[list[float], list[float]]:
    path = folder / "progress.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    steps, values = read_metric(path, "a")
    return steps.tolist(), values.tolist()


@pytest.mark.parametrize(
    "rows",
    [
        "100,1,2\n200,3,4\n",
        "100,1,2\n,,4\n200,3,4\n",  # logged now and then
        "100,1,2\n150,,4\n200,3,4\n",
        "100,1,2\n150,nan,4\n200,3,4\n",
        "100,1,2\n200,3,4\n30",  # a run that is going on
        "100,1,2\r\n200,3,4\r\n300,4",
    ],
)
def test_rows_that_have_the_column(tmp_path: Path, rows: str) -> None:
    assert read(tmp_path, HEAD + rows) == ([100.0, 200.0], [1.0, 3.0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "100,1,2\n200,x,4\n", r"csv, line 3: a must be a number, got 'x'"),
        (HEAD + "100,1,2\nabc,3,4\n", r"csv, line 3: time/total_timesteps must be a number, got"),
        (HEAD + "100\n", r"csv, line 2: a must be a number, got nothing"),
        (HEAD + "nan,1,2\n", r"csv, line 2: time/total_timesteps must be a number of steps"),
        (HEAD + "200,1,2\n100,3,4\n", r"csv, line 3: 100 steps come after 200"),
        (HEAD + "100,\0,2\n", r"csv, line 2: a must be a number, got '\\x00'"),
        ("a,b\n1,2\n", r"csv has no column 'time/total_timesteps'"),
        ("", r"csv has no column"),
        (HEAD, r"csv has no value of 'a' yet"),
        (b"\xff\xfe\n", r"csv is damaged: it is no text"),
    ],
)
def test_what_is_damaged_is_named(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        read(tmp_path, text)
