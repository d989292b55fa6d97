"""Writing files so that a reader never sees half of one."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path`; whatever happens, the file holds the old text or the new one."""
    write_bytes(path, text.encode("utf-8"))


def copy_file(source: Path, target: Path) -> None:
    """Copy a file; whatever happens, `target` is the old file or the new one."""
    write_bytes(target, source.read_bytes())


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path`; whatever happens, the file holds the old bytes or the new ones."""
    with new_file(path) as temporary:
        temporary.write_bytes(content)


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield the name of a file to write; it takes the place of `path` when the context ends well.

    The name has the ending of `path`.

    Raises:
        OSError: The file cannot be written; the error names `path`.
    """
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{path.suffix.lower()}")
    try:
        temporary.touch(exist_ok=False)
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(temporary)):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
