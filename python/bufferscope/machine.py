"""What a run remembers about the machine it ran on."""

import os
import platform
from functools import cache
from pathlib import Path


@cache
def describe() -> dict[str, str | int]:
    """System, processor and interpreter."""
    return {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "cpu": _cpu(),
        "cpus": cpus(),
        "python": platform.python_version(),
    }


def cpus() -> int:
    """The processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu() -> str:
    """The processor's model where the system tells, else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())
