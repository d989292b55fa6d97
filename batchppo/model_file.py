"""The file format of models: a zip of one JSON document and plain arrays.

    model.json              the document
    arrays/<name>.npy       one array each, in NumPy's format

Reading runs no code and imports nothing that the file names: arrays are numbers only, no member is
compressed and no two share bytes, so that they cannot claim more memory than the file has bytes.
Members with other names are not read at all.
"""

from __future__ import annotations

import errno
import io
import json
import os
import secrets
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Never, TypeAlias

import numpy as np
from numpy.typing import NDArray

from batchppo.errors import ModelFileError

PathLike: TypeAlias = str | os.PathLike[str]
ModelPath: TypeAlias = PathLike | BinaryIO
"""A model file, or a stream of bytes that can be sought."""
Source: TypeAlias = Path | BinaryIO
Arrays: TypeAlias = Mapping[str, NDArray[Any]]

FORMAT = "batchppo model"
SCHEMA = 1
"""The version of the document's layout; a change that old code cannot read raises it."""

_DOCUMENT = "model.json"
_PREFIX = "arrays/"


def write_model_file(path: ModelPath, document: Mapping[str, Any], arrays: Arrays) -> Path | None:
    """Writes a model file, whole or not at all: a crash leaves an older file as it was.

    Args:
        path: where; `.zip` is added where there is no suffix, missing folders are made. A stream is
            written to as it is.
        document: JSON values.
        arrays: arrays of numbers by name.

    Returns:
        The path written, None for a stream.

    Raises:
        OSError: the file cannot be written; its `filename` is the path.
    """
    document = {"format": FORMAT, "schema": SCHEMA, **document}
    if not isinstance(path, str | os.PathLike):
        _require_stream(path, "write")
        _write(path, document, arrays)
        return None
    target = with_suffix(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}-{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as file:
            _write(file, document, arrays)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        # A full disk comes without a name, others with that of the temporary file.
        raise OSError(error.errno, error.strerror, str(target)) from error
    finally:
        temporary.unlink(missing_ok=True)
    return target


def read_model_file(path: ModelPath) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Returns the document and the arrays of a model file.

    Raises:
        FileNotFoundError: there is no such file.
        ModelFileError: it is not a model file, is damaged, or is of another version.
    """
    source: Source
    if isinstance(path, str | os.PathLike):
        source = existing(path)
    else:
        _require_stream(path, "read")
        source = path
    try:
        with zipfile.ZipFile(source) as archive:
            _require_own_bytes(archive, source)
            document = _read_document(archive, source)
            names = [name for name in archive.namelist() if name.startswith(_PREFIX)]
            arrays = {
                name.removeprefix(_PREFIX).removesuffix(".npy"): _read_array(archive, name, source)
                for name in names
            }
    except _DAMAGE as error:
        _raise_damaged(source, error)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a place before the file's beginning
            raise
        _raise_damaged(source, error)
    return document, arrays


# What zipfile raises for an archive with wrong bytes: also claims of encryption, of unknown
# compression and versions, and names that are no text.
_DAMAGE = (
    zipfile.BadZipFile,
    EOFError,
    NotImplementedError,
    RuntimeError,
    UnicodeDecodeError,
)


def _raise_damaged(source: Source, error: Exception) -> Never:
    reason = str(error) or "it ends too early"
    raise ModelFileError(
        f"{source} is no model file, or was cut off or damaged ({reason}); expected the zip "
        f"archive that BatchPPO.save writes"
    ) from None


def _require_own_bytes(archive: Any, source: Source) -> None:
    """Refuses an archive whose members claim more bytes than the file has, alone or together."""
    claimed = sum(info.compress_size for info in archive.infolist())
    size = archive.fp.seek(0, os.SEEK_END)
    if claimed > size:
        raise ModelFileError(
            f"{source} has {size:,} bytes, but its members claim {claimed:,}; expected a file that "
            f"BatchPPO.save wrote, which compresses nothing"
        )


def _require_stream(stream: Any, method: str) -> None:
    if not (hasattr(stream, method) and hasattr(stream, "seek")):
        raise TypeError(f"expected a path or a stream of bytes such as io.BytesIO, got {stream!r}")


def with_suffix(path: PathLike) -> Path:
    """Returns `path` with `.zip` added where it has no suffix.

    Raises:
        ValueError: it names no file, as "" and "/" do.
    """
    target = Path(path)
    if not target.name:
        raise ValueError(f"got {os.fspath(path)!r}, expected the name of a file like 'model.zip'")
    return target if target.suffix else target.with_name(f"{target.name}.zip")


def existing(path: PathLike) -> Path:
    """Returns the file that `path` names, with or without its `.zip`.

    Raises:
        FileNotFoundError: there is none.
        IsADirectoryError: it is a folder.
    """
    for candidate in (Path(path), with_suffix(path)):
        if candidate.is_file():
            return candidate
    if Path(path).is_dir():
        raise IsADirectoryError(f"{path} is a folder; expected a model file such as model.zip")
    raise FileNotFoundError(f"there is no model file {path}")


def _write(file: Any, document: Mapping[str, Any], arrays: Arrays) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_DOCUMENT, json.dumps(document, indent=1, allow_nan=False))
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=False)
            archive.writestr(f"{_PREFIX}{name}.npy", buffer.getvalue())


def _read_document(archive: zipfile.ZipFile, source: Source) -> dict[str, Any]:
    if _DOCUMENT not in archive.namelist():
        other = "a Stable-Baselines3 model" if "policy.pth" in archive.namelist() else "no model"
        raise ModelFileError(f"{source} is {other}: it has no '{_DOCUMENT}'; expected a file that "
                             f"BatchPPO.save wrote")  # fmt: skip
    try:
        document = json.loads(_member(archive, _DOCUMENT, source), parse_constant=_refuse_constant)
    except ModelFileError:
        raise
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{source}: '{_DOCUMENT}' is no JSON ({error})") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{source}: '{_DOCUMENT}' does not say that it is a {FORMAT}")
    if document.get("schema") != SCHEMA:
        raise ModelFileError(
            f"{source} has schema version {document.get('schema')!r}, this version of batchppo "
            f"reads {SCHEMA}; upgrade batchppo, or load it with the version that wrote it "
            f"({document.get('versions')})"
        )
    return document


def _refuse_constant(text: str) -> Never:
    raise ValueError(f"{text} is no number of JSON")


def _read_array(archive: zipfile.ZipFile, name: str, source: Source) -> NDArray[Any]:
    buffer = io.BytesIO(_member(archive, name, source))
    try:
        version = np.lib.format.read_magic(buffer)
        if version != (1, 0):
            raise ValueError(f"version {version}")
        shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(buffer)
    except (ValueError, EOFError) as error:
        raise ModelFileError(f"{source}: '{name}' is no NumPy array ({error})") from None
    if dtype.kind not in "fiub" or fortran_order:
        order = " in Fortran's order" if fortran_order else ""
        raise ModelFileError(
            f"{source}: '{name}' holds {dtype}{order}, expected plain numbers in C's order"
        )
    content = buffer.read()
    if len(content) != int(np.prod(shape, dtype=object)) * dtype.itemsize:
        raise ModelFileError(
            f"{source}: '{name}' claims shape {shape} of {dtype} but has {len(content)} bytes"
        )
    return np.frombuffer(content, dtype).reshape(shape).copy()


def _member(archive: zipfile.ZipFile, name: str, source: Source) -> bytes:
    info = archive.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        raise ModelFileError(
            f"{source}: '{name}' is compressed, which BatchPPO.save never does; unpack the archive "
            f"and zip it again with `zip -0`"
        )
    return archive.read(info)
