"""The complaints of `docs/complaints.md`: each is held by tests that exist."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "complaints.md"


def test_every_complaint_is_held_by_tests_that_exist():
    rows = re.findall(r"^\| (\d+) \| (.*) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    assert [int(number) for number, *_ in rows] == list(range(1, 37))
    for number, _, held_by in rows:
        tests = re.findall(r"`(tests/\w+\.py)::(\w+)`", held_by)
        assert tests, f"nothing holds complaint {number}"
        for file, name in tests:
            assert f"def {name}(" in (ROOT / file).read_text(), f"{file} has no {name}"


def test_nothing_abandoned_is_depended_on():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(text for extra in extras for text in extra)]
    names = {re.split(r"[^\w-]", text)[0].lower() for text in wanted}
    assert "tensorflow" in names
    assert not names & {"tensorflow-probability", "tf-keras", "tf-agents", "dm-reverb", "gym"}
