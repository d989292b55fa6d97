"""Compare a wheel's listing with the sources: every module, and nothing else at the top."""

import sys
import zipfile
from pathlib import Path

PACKAGES = {"batchgym": "batchgym", "batchppo": "batchppo", "batchppo_cli": "cli"}
ROOT = Path(__file__).resolve().parent.parent


def expected_files() -> set[str]:
    """The wheel's paths of all source files of the three packages."""
    return {
        f"{package}/{path.relative_to(ROOT / folder).as_posix()}"
        for package, folder in PACKAGES.items()
        for path in (ROOT / folder).rglob("*")
        if path.suffix == ".py" or path.name == "py.typed"
    }


def main(wheel: str) -> str | None:
    """Return what is wrong with the wheel, or None."""
    names = zipfile.ZipFile(wheel).namelist()
    installed = {name for name in names if ".dist-info/" not in name}
    missing, surplus = expected_files() - installed, installed - expected_files()
    if missing or surplus:
        return f"missing from the wheel: {sorted(missing)}; not in the sources: {sorted(surplus)}"
    if not any(name.endswith("/LICENSE") for name in names):
        return "the wheel lacks the LICENSE"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
