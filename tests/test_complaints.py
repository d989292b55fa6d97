"""The complaints of `docs/complaints.md`: each is held by tests that exist."""

import itertools
import os
import re
import tomllib
from pathlib import Path

from stub_envs import CountingEnv

import batchgym

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


def test_cheap_environments_share_a_worker_per_core():
    env = batchgym.ProcessVectorEnv([CountingEnv] * 33)
    places = env.call("where")
    env.close()
    cores = len(os.sched_getaffinity(0))
    assert 1 <= len(set(places)) <= min(cores, 33)
    # Neighbours share a worker, so that a step is one message to each, and no worker has much more.
    shares = [len(list(share)) for _, share in itertools.groupby(places)]
    assert len(shares) == len(set(places))
    assert max(shares) - min(shares) <= 1


def test_nothing_abandoned_is_depended_on():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(text for extra in extras for text in extra)]
    names = {re.split(r"[^\w-]", text)[0].lower() for text in wanted}
    assert "tensorflow" in names
    assert not names & {"tensorflow-probability", "tf-keras", "tf-agents", "dm-reverb", "gym"}
