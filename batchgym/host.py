"""What this process runs on: the system, its usable cores, and whether it is a worker."""

from __future__ import annotations

import os
import sys
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


def require_posix() -> None:
    """Raises ImportError with a way out on systems without POSIX processes."""
    if sys.platform == "win32":
        raise ImportError(
            "batchgym needs Linux (or macOS, untested); Windows has neither passed descriptors "
            "nor anonymous shared memory. Install it in WSL 2: https://learn.microsoft.com/windows/wsl"
        )


def in_worker() -> bool:
    """Says whether this process is a worker (and not a child of one), see `batchgym.bootstrap`."""
    return os.environ.get("BATCHGYM_WORKER") == str(os.getpid())


def cpu_quota() -> float | None:
    """Returns the cgroup's CPU quota in cores, None without a limit."""
    v2, v1 = CGROUP / "cpu.max", CGROUP / "cpu"
    try:
        if v2.exists():
            quota, period = v2.read_text().split()
        else:
            quota = (v1 / "cpu.cfs_quota_us").read_text()
            period = (v1 / "cpu.cfs_period_us").read_text()
        return None if quota == "max" or int(quota) <= 0 else int(quota) / int(period)
    except (OSError, ValueError):
        return None


def usable_cores() -> int:
    """Returns the cores this process may use: affinity, then the cgroup's quota; at least 1."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quota = cpu_quota()
    return max(1, cores if quota is None else min(cores, int(quota)))


def spinning_pays(num_workers: int) -> bool:
    """Says whether waiting may spin: no more workers than cores, no fractional quota."""
    quota = cpu_quota()
    return num_workers <= usable_cores() and (quota is None or quota == int(quota))
