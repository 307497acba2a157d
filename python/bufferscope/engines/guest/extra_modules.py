"""Kernel modules that a distribution leaves out, and the cache of those that were built for a guest.

Each is built from the source of the kernel that it is for, and for that kernel alone (`module_building`).
"""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from bufferscope.engines.guest import cache, modules
from bufferscope.engines.guest.kernels import Kernel

FORMAT = 1
"""Must be changed whenever the same kernel would get another module."""


@dataclass(frozen=True)
class ExtraModule:
    """A module that Debian does not build."""

    name: str
    """As in an experiment file: `dualpi2`."""
    source: str
    """Its only file in the kernel's source."""
    since: str
    """The first series whose source has it."""

    @property
    def module(self) -> str:
        """The kernel's name for it: `sch_dualpi2`."""
        return Path(self.source).stem


EXTRA = {each.name: each for each in (ExtraModule("dualpi2", "net/sched/sch_dualpi2.c", "6.17"),)}
"""By name. Debian has CONFIG_NET_SCH_DUALPI2 unset, in 7.3 too."""


RECENT = "7.3"
"""A series with all of them that Debian had when this was written."""


def directory(identity: str) -> Path:
    """Where the modules for the kernel of this identity are, if any were built."""
    return cache.directory("modules") / sha256(f"{FORMAT}\n{identity}\n".encode()).hexdigest()[:16]


def of(kernel: Kernel) -> dict[str, bytes]:
    """The modules that were built for a kernel; there are none for installed kernels, whose source is not known."""
    return built(kernel.identity()) if kernel.packages else {}


def has(kernel: Kernel, wanted: ExtraModule) -> bool:
    """Whether a guest of this kernel has a module, built for it or the kernel's own."""
    return wanted.module in of(kernel) or modules.comes_with(kernel.files, kernel.release, wanted.module)


def built(identity: str) -> dict[str, bytes]:
    """The modules that were built for the kernel of this identity, by the kernel's names for them."""
    paths = sorted(directory(identity).glob("*.ko"))
    return {path.stem: path.read_bytes() for path in paths}
