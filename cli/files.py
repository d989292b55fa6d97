"""Writing files so that a reader never sees half of one."""

import os
import tempfile
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path`; whatever happens, the file holds the old text or the new one."""
    write_bytes(path, text.encode("utf-8"))


def copy_file(source: Path, target: Path) -> None:
    """Copy a file; whatever happens, `target` is the old file or the new one."""
    write_bytes(target, source.read_bytes())


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path`; whatever happens, the file holds the old bytes or the new ones."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
