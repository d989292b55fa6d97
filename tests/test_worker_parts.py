"""Parts that need no process: cores, names of deaths, pickling, schema of infos, autoreset."""

import functools
import os
import pickle

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from stub_envs import CountingEnv, TwoArgumentError, UnpicklableError

from batchgym import WorkerDiedError, failures, host, pickling
from batchgym.actions import ActionReceiver, ActionSender
from batchgym.errors import EnvironmentFailedError, describe_exit
from batchgym.info_reader import InfoReader
from batchgym.info_schema import SchemaLearner, describe_entry
from batchgym.memory import ArrayRequest, SharedMemory
from batchgym.observation_writer import make_writer
from batchgym.pool import slices


@pytest.mark.parametrize(
    ("num_envs", "num_workers", "sizes"),
    [(8, 2, [4, 4]), (7, 2, [3, 4]), (10, 4, [2, 3, 2, 3]), (3, 3, [1, 1, 1]), (5, 1, [5])],
)
def test_slices_are_consecutive_and_even(num_envs, num_workers, sizes):
    parts = slices(num_envs, num_workers)
    assert [len(part) for part in parts] == sizes
    assert [index for part in parts for index in part] == list(range(num_envs))


@pytest.mark.parametrize(
    ("affinity", "quota", "cores"),
    [(4, None, 4), (4, 2.0, 2), (4, 2.7, 2), (4, 0.5, 1), (1, None, 1), (2, 8.0, 2)],
)
def test_usable_cores(monkeypatch, affinity, quota, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(affinity)))
    monkeypatch.setattr(host, "cpu_quota", lambda: quota)
    assert host.usable_cores() == cores
    fractional = quota is not None and quota != int(quota)
    assert host.spinning_pays(cores) is not fractional
    assert not host.spinning_pays(cores + 1)


def test_quota_of_the_cgroup(monkeypatch, tmp_path):
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    monkeypatch.setattr(host, "CGROUP", tmp_path)
    assert host.cpu_quota() == 1.5
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert host.cpu_quota() is None
    (tmp_path / "cpu.max").unlink()
    assert host.cpu_quota() is None
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("200000\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert host.cpu_quota() == 2.0


def test_windows_is_told_about_wsl(monkeypatch):
    monkeypatch.setattr("sys.platform", "win32")
    with pytest.raises(ImportError, match="WSL 2"):
        host.require_posix()


@pytest.mark.parametrize(
    ("exit_code", "text"),
    [
        (3, "exit code 3"),
        (-9, "killed by SIGKILL (is the machine out of memory"),
        (-11, "killed by SIGSEGV"),
        (-99, "killed by signal 99"),
        (None, "still runs"),
    ],
)
def test_words_for_deaths(exit_code, text):
    assert text in describe_exit(exit_code)


def test_death_can_be_pickled():
    error = WorkerDiedError(2, range(4, 6), -9, "step_wait")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert again.env_indices == range(4, 6)


def raised(error):
    try:
        raise error
    except type(error) as caught:
        return failures.restore(failures.capture(caught, 3, "step"))


def test_exceptions_survive_the_journey():
    again = raised(TwoArgumentError("a", "b"))
    assert (type(again), again.left, str(again)) == (TwoArgumentError, "a", "a and b")
    again = raised(UnpicklableError("x"))
    assert type(again) is EnvironmentFailedError
    assert "Environment 3 raised UnpicklableError: x in `step`" in str(again)
    assert "raise error" in str(again.__cause__)
    local = type("LocalError", (Exception,), {})
    assert type(raised(local("y"))).__name__ == "LocalError"


LIMIT = 7


def test_class_bodies_bring_their_globals():
    def define():
        class Inner:
            value = LIMIT

        return Inner

    define.__module__ = "__main__"
    pickler_globals = pickle.loads(pickling.dump_by_value(define)).__globals__
    assert pickler_globals["LIMIT"] == 7


@pytest.mark.parametrize(
    ("value", "described"),
    [
        (1, (int, (), "int64")),
        (1.5, (float, (), "float64")),
        (True, (bool, (), "bool")),
        (np.float32(1), (np.float32, (), "float32")),
        (np.zeros((2, 3), np.int8), (np.ndarray, (2, 3), "int8")),
        ({}, (dict, (), "None")),
        ("text", None),
        (None, None),
        (np.bool_(True), None),
        (np.array(["a"]), None),
        (np.array([None]), None),
        ([1], None),
    ],
    ids=repr,
)
def test_which_infos_can_be_shared(value, described):
    entry = describe_entry(("key",), value)
    found = entry and (entry.kind, entry.shape, str(entry.dtype))
    assert found == described


def test_final_observations_are_not_looked_into():
    assert describe_entry(("final_obs",), {"a": 1}) is None
    assert describe_entry(("final_obs",), np.zeros(2)) is not None


def test_learner_gives_up_what_varies():
    learner = SchemaLearner(4)
    learner.observe({"a": 1, "b": {"c": 2.0}, 5: 1})
    assert [entry.path for entry in learner.revise()] == [("a",), ("b",), ("b", "c")]
    assert learner.revise() is None
    learner.observe({"a": 1, "b": {"c": 3.0}})
    assert learner.revise() is None
    learner.observe({"b": 1.0})
    assert [entry.path for entry in learner.revise()] == [("a",)]
    learner.observe({"b": {"c": 1.0}})
    assert learner.revise() is None


def test_learner_does_not_revise_for_ever():
    learner = SchemaLearner(1)
    revisions = 0
    for number in range(100):
        learner.observe({f"key{number}": 1.0})
        revisions += learner.revise() is not None
    assert revisions == 20


def test_reader_without_infos():
    assert InfoReader(3).read([]) == {}


def test_rows_are_written_where_they_belong():
    rows = np.zeros((3, 2), np.float32)
    loose = {}
    write = make_writer(Box(0, 9, (2,)), [rows], 1, loose, shared=True)
    write(np.array([1.0, 2.0]))
    write([3, 4])
    assert rows.tolist() == [[0, 0], [3, 4], [0, 0]]
    with pytest.raises(ValueError, match=r"Environment 1 returned an observation of shape \(3,\)"):
        write(np.zeros(3))
    scalars = np.zeros(3, np.int64)
    make_writer(Discrete(9), [scalars], 2, loose, shared=True)(5)
    assert scalars.tolist() == [0, 0, 5]
    make_writer(Discrete(9), [None], 2, loose, shared=False)("whole")
    assert loose == {2: ["whole"]}


def test_actions_keep_their_dtype_and_belong_to_the_receiver():
    memory = SharedMemory()
    requests = [ArrayRequest((4, 8), np.dtype(np.uint8))]
    raw = memory.arrays(memory.extend(requests), requests)
    sender = ActionSender(Discrete(5), 4, raw)
    receiver = ActionReceiver(Discrete(5), 4, raw, slice(1, 3))
    assert sender.share(np.array([1, 2, 3, 4]))
    taken = list(receiver.take_all())
    assert not sender.share(np.array([1, 2, 3, 4], np.int32))
    receiver.install(sender.adapt(np.array([5, 6, 7, 8], np.int32)))
    assert sender.share(np.array([5, 6, 7, 8], np.int32))
    assert taken == [2, 3]
    assert [(type(a), int(a)) for a in receiver.take_all()] == [(np.int32, 6), (np.int32, 7)]
    assert (type(receiver.take(1)), int(receiver.take(1))) == (np.int32, 7)
    memory.close()


def test_environments_without_a_process():
    # The stubs that the other tests rely on count as they say.
    env = functools.partial(CountingEnv, 2)()
    assert env.reset()[0].tolist() == [0, 0]
    assert env.step(0)[:3][1:] == (1.0, False)
    assert env.step(0)[:3][1:] == (2.0, True)
