"""Model files: whole or not at all, no code inside, clear errors."""

import contextlib
import io
import os
import pickle
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchppo import model_file
from batchppo.errors import ModelFileError
from batchppo.model_file import read_model_file, write_model_file

ARRAYS = {"weights/a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([7], np.int64)}


@pytest.fixture
def path(tmp_path):
    return write_model_file(tmp_path / "model.zip", {"name": "x"}, ARRAYS)


def rewritten(path, change, compression=zipfile.ZIP_STORED):
    """Writes the archive anew with `change(name, content)`, which returns None to drop a member."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            changed = change(name, content)
            if changed is not None:
                archive.writestr(name, changed)
    return path


def npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def test_write_and_read(path):
    document, arrays = read_model_file(path)
    assert document["name"] == "x"
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert np.array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype
        assert arrays[name].flags.writeable


def test_the_suffix_is_added_and_found(tmp_path):
    written = write_model_file(tmp_path / "deep" / "model", {}, {})
    assert written == tmp_path / "deep" / "model.zip"
    assert read_model_file(tmp_path / "deep" / "model")[1] == {}


def test_an_older_file_survives_a_failed_write(path, monkeypatch):
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        write_model_file(path, {"name": "y"}, ARRAYS)
    assert caught.value.errno == 28
    assert caught.value.filename == str(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_the_file_is_as_readable_as_any_other(path):
    other = path.with_name("other")
    other.touch()
    assert path.stat().st_mode == other.stat().st_mode


def test_it_contains_no_pickle(path):
    with zipfile.ZipFile(path) as archive:
        assert {name.rpartition(".")[2] for name in archive.namelist()} == {"json", "npy"}


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="no model file .*nothing"):
        read_model_file(tmp_path / "nothing")


def test_a_folder(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder; expected a model file"):
        read_model_file(tmp_path)


@given(st.floats(0, 0.999))
def test_a_truncated_file_is_refused(fraction):
    buffer = io.BytesIO()
    model_file._write(buffer, {"format": model_file.FORMAT, "schema": 1}, ARRAYS)
    content = buffer.getvalue()
    path = model_file.Path(os.environ["HYPOTHESIS_FILE"])
    path.write_bytes(content[: int(len(content) * fraction)])
    with pytest.raises(ModelFileError, match="cut off or damaged"):
        read_model_file(path)


@pytest.fixture(autouse=True)
def _scratch_file(tmp_path_factory, monkeypatch):
    # hypothesis does not take function-scoped fixtures such as tmp_path
    monkeypatch.setenv("HYPOTHESIS_FILE", str(tmp_path_factory.mktemp("cut") / "model.zip"))


def test_a_damaged_byte_is_found(path):
    content = bytearray(path.read_bytes())
    at = content.find(b"\x93NUMPY") + 140
    content[at] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=f"{path}.*damaged"):
        read_model_file(path)


class Spy:
    """Leaves a trace when it is unpickled."""

    def __reduce__(self):
        return (os.putenv, ("UNPICKLED", "1"))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda n, c: None if n == "model.json" else c, "no model: it has no 'model.json'"),
        (lambda n, c: b"{" if n == "model.json" else c, "is no JSON"),
        (lambda n, c: b"[]" if n == "model.json" else c, "does not say that it is a batchppo"),
        (lambda n, c: b"[" * 100_000 if n == "model.json" else c, "is no JSON"),
        (lambda n, c: b"9" * 5000 if n == "model.json" else c, "is no JSON"),
        (lambda n, c: b'{"x": NaN}' if n == "model.json" else c, "NaN is no number of JSON"),
        (lambda n, c: b"\xff\xfe" if n == "model.json" else c, "is no JSON"),
        (lambda n, c: c.replace(b'"schema": 1', b'"schema": 99') if n == "model.json" else c,
         "schema version 99.*reads 1; upgrade batchppo"),
        (lambda n, c: b"hello" if n.endswith(".npy") else c, "no NumPy array"),
        (lambda n, c: c[:-1] if n.endswith(".npy") else c, "claims shape .* but has"),
        (lambda n, c: npy(np.array([Spy()]), allow_pickle=True) if n.endswith(".npy") else c,
         "holds object, expected plain numbers"),
        (lambda n, c: npy(np.array(["text"])) if n.endswith(".npy") else c, "holds <U4"),
        (lambda n, c: pickle.dumps(Spy()) if n.endswith(".npy") else c, "no NumPy array"),
        (lambda n, c: npy(np.ones((2, 3), order="F")) if n.endswith(".npy") else c,
         "float64 in Fortran's order"),
    ],
)  # fmt: skip
def test_wrong_members_are_refused(path, change, match):
    with pytest.raises(ModelFileError, match=match):
        read_model_file(rewritten(path, change))
    assert "UNPICKLED" not in os.environ


def test_a_claim_of_a_huge_array_takes_no_memory(path):
    one = npy(np.zeros(1, np.float32))
    huge = one.replace(b"(1,), }" + b" " * 13, b"(99999999999999,), }")
    assert b"99999999999999" in huge
    with pytest.raises(ModelFileError, match=r"claims shape \(99999999999999,\)"):
        read_model_file(rewritten(path, lambda n, c: huge if n.endswith(".npy") else c))


def test_a_zip_bomb_is_refused_before_it_is_unpacked(path):
    bomb = npy(np.zeros(50_000_000, np.float32))
    rewritten(path, lambda n, c: bomb if n.endswith("b.npy") else c, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 1_000_000
    with pytest.raises(ModelFileError, match="is compressed"):
        read_model_file(path)


def test_members_that_share_bytes_are_refused(path):
    content = path.read_bytes()
    first = content.index(b"PK\x01\x02")
    end = content.index(b"PK\x05\x06")
    entries = 1 + 1000
    entry = content[first : content.index(b"PK\x01\x02", first + 4)]
    directory = content[first:end] + entry * 1000
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, entries, entries, len(directory), first, 0)
    path.write_bytes(content[:first] + directory + tail)
    with pytest.raises(ModelFileError, match=r"bytes, but its members claim|damaged"):
        read_model_file(path)


@pytest.mark.parametrize("seed", range(5))
def test_whatever_is_damaged_it_is_a_model_file_error(path, seed):
    """Bytes of the zip's own headers too: claims of encryption, of other versions, of sizes."""
    content = path.read_bytes()
    rng = np.random.default_rng(seed)
    for _ in range(100):
        damaged = bytearray(content)
        damaged[rng.integers(len(content))] = rng.integers(256)
        path.write_bytes(damaged)
        with contextlib.suppress(ModelFileError):  # a date may have any value
            read_model_file(path)


def test_members_of_other_names_are_not_read(path):
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("data.pkl", pickle.dumps(Spy()))
        archive.writestr("../outside.npy", npy(np.ones(1)))
    assert read_model_file(path)[1].keys() == ARRAYS.keys()
    assert "UNPICKLED" not in os.environ
    assert not (path.parent.parent / "outside.npy").exists()


def test_a_stream_takes_the_place_of_a_file():
    stream = io.BytesIO()
    assert write_model_file(stream, {"name": "x"}, ARRAYS) is None
    assert read_model_file(io.BytesIO(stream.getvalue()))[1].keys() == ARRAYS.keys()
    with pytest.raises(ModelFileError, match="cut off or damaged"):
        read_model_file(io.BytesIO(b"nothing"))


@pytest.mark.parametrize("path", [3, None, b"model.zip"])
def test_what_is_neither_path_nor_stream(path):
    with pytest.raises(TypeError, match="expected a path or a stream of bytes"):
        read_model_file(path)
    with pytest.raises(TypeError, match="expected a path or a stream of bytes"):
        write_model_file(path, {}, {})


@pytest.mark.parametrize("path", ["", "/"])
def test_a_path_without_a_name(path):
    with pytest.raises((ValueError, IsADirectoryError), match="expected|is a folder"):
        read_model_file(path)
    with pytest.raises(ValueError, match="expected the name of a file"):
        write_model_file(path, {}, {})


def test_a_model_of_stable_baselines3_is_recognized(tmp_path):
    path = tmp_path / "sb3.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", "{}")
        archive.writestr("policy.pth", "")
    with pytest.raises(ModelFileError, match="is a Stable-Baselines3 model"):
        read_model_file(path)


def test_json_is_strict(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_model_file(tmp_path / "m.zip", {"x": float("nan")}, {})
    assert list(tmp_path.iterdir()) == []
