"""The peers' own Python environment, so that their dependencies do not meet ours."""

import os
import subprocess
import sys
import venv
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("ppo_peers.txt")
_MODULES = {"sb3": "stable_baselines3", "sbx": "sbx", "contrib": "sb3_contrib"}


def default_folder():
    """Returns where the environment is if nobody says otherwise."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "batchppo" / "peers"


def peers_python(folder):
    """Returns the interpreter of the peers' environment, which is made if it is not there.

    Where pip fails, its last words are printed: what it did install can be used all the same.
    """
    python = folder / "bin" / "python"
    if python.exists():
        return python
    print(f"installing the peers into {folder}: about 2 GB, some minutes, once", flush=True)
    venv.create(folder, with_pip=True)
    command = [python, "-m", "pip", "install", "--quiet", "-r", REQUIREMENTS]
    result = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True)
    if result.returncode:
        print("\n".join(result.stderr.splitlines()[-5:]), file=sys.stderr)
    return python


def installed(python, candidates):
    """Returns those of the candidates whose library can be imported, and tells of the others."""
    found = []
    for name in candidates:
        module = _MODULES[name.split("-")[0]]
        probe = [python, "-c", f"import importlib.util as u; exit(u.find_spec('{module}') is None)"]
        if subprocess.run(probe, check=False).returncode == 0:
            found.append(name)
        else:
            print(f"without {name}: {module} is not installed for {python}", file=sys.stderr)
    return found
