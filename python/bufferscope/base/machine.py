"""The machine: the description that runs store, and the processors and memory that are available."""

import os
import platform
import resource
from collections.abc import Iterator
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
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_bytes() -> int | None:
    """Memory that the system, the control group and the limits of the process leave; None if none reports it."""
    group = Path("/sys/fs/cgroup")
    limit, used = _number(group / "memory.max"), _number(group / "memory.current")
    free = [_available_in_system(), None if limit is None or used is None else limit - used, *_left_by_limits()]
    known = [max(0, each) for each in free if each is not None]
    return min(known, default=None)


def gigabytes(size: int) -> str:
    """An amount of memory in words."""
    return f"{size / 1e9:.2g} GB"


def _available_in_system() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    found = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    return next((1024 * int(kib) for kib in found), None)


def _left_by_limits() -> Iterator[int]:
    """What the limits of the process (`ulimit -v` and `-d`) leave of its address space."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return
    sizes = {line.partition(":")[0]: 1024 * int(line.split()[1]) for line in lines if line.startswith("Vm")}
    for limit, used in ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")):
        most, _ = resource.getrlimit(limit)
        if most != resource.RLIM_INFINITY and used in sizes:
            yield most - sizes[used]


def _number(path: Path) -> int | None:
    """The number in a file, if there is one."""
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _cpu() -> str:
    """The processor's model if the system reports it, otherwise its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())
