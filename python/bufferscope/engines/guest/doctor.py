"""Checks for the guest engine: an emulator, tools to put into the guest, a kernel, and disk space for the cache."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bufferscope.base.programs import packages
from bufferscope.engines.doctor.findings import NOTHING, EngineCheck, Fix
from bufferscope.engines.doctor.programs import agent_check, tool_checks
from bufferscope.engines.doctor.system import System
from bufferscope.engines.guest import cache, extra_modules, fetch, hardware, image, kernels, programs
from bufferscope.engines.guest.errors import GuestError
from bufferscope.engines.guest.extra_modules import EXTRA, RECENT
from bufferscope.engines.guest.kernels import Kernel, version_key

OLDEST_QEMU = (7, 2)
"""The oldest version with which this engine was tested."""
ROOM_BYTES = 400 << 20
"""Disk space for a kernel package, its image and a saved state together."""
_BUILD = "bufferscope guest build"
_FIRST_MEMBERS_BYTES = 160
"""The part of a .deb that holds its version and the name of the archive that follows."""


def checks(system: System) -> Iterator[EngineCheck]:
    """The emulator, the agent, the tools, the kernel and the cache."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        here = f"{platform.system()} on {platform.machine()}"
        yield EngineCheck(
            "Linux on x86-64", "missing", f"this is {here}, and the guest borrows ip and tc: use --engine sim"
        )
        return
    yield _qemu()
    yield agent_check()
    yield from tool_checks(programs.BORROWED)
    yield from _kernel(system)
    yield _cache()


def _qemu() -> EngineCheck:
    install = Fix(packages=packages([hardware.PROGRAM]))
    try:
        qemu = hardware.find_qemu()
    except GuestError as error:
        return EngineCheck("QEMU", "missing", str(error), install)
    if "tcg" not in _accelerators(qemu.path):
        return EngineCheck("QEMU", "missing", f"{qemu.path} has no TCG, which virtual time needs", install)
    if qemu.number < OLDEST_QEMU:
        oldest = ".".join(map(str, OLDEST_QEMU))
        return EngineCheck("QEMU", "limited", f"{qemu.version}: versions before {oldest} are untested", install)
    return EngineCheck("QEMU", "ready", f"{qemu.version}, {qemu.path}")


def _accelerators(qemu: Path) -> list[str]:
    done = subprocess.run([qemu, "-accel", "help"], capture_output=True, text=True, check=False)
    return done.stdout.split()


def _kernel(system: System) -> Iterator[EngineCheck]:
    try:
        chosen = kernels.choose(None)
    except GuestError as error:
        yield _no_kernel(str(error))
        return
    built = [each for each in image.for_runs() if each.release == chosen.release]
    if not built:
        yield EngineCheck(
            "kernel",
            "ready",
            f"Linux {chosen.release} ({chosen.origin}); the first run starts it once{_extra_modules(chosen)}",
        )
        yield from _decompression(chosen)
        return
    extra = extra_modules.of(chosen)
    missing = [name for name in built[-1].missing if name not in extra]
    lacks = f"; without {', '.join(missing)}" if missing else ""
    yield EngineCheck("kernel", "ready", f"Linux {chosen.release} ({chosen.origin}){lacks}{_extra_modules(chosen)}")


def _extra_modules(chosen: Kernel) -> str:
    """Which other kernel has a module that Debian's kernels lack, or the command that builds it."""
    text = ""
    for extra in EXTRA.values():
        recent = [each for each in kernels.at_hand() if version_key(each.series) >= version_key(extra.since)]
        having = [each.series for each in recent if extra.module in extra_modules.of(each)]
        if chosen.series in having:
            continue
        if having:
            text += f"; {extra.module} with --kernel {having[-1]}"
        else:
            series = recent[-1].series if recent else RECENT
            text += f"; `{_BUILD} --kernel {series} --module {extra.name}` adds {extra.module}"
    return text


def _no_kernel(error: str) -> EngineCheck:
    if fetch.can_fetch():
        return EngineCheck(
            "kernel", "missing", "none available; apt can fetch one without root", Fix(commands=(_BUILD,))
        )
    return EngineCheck("kernel", "missing", error)


def _decompression(kernel: Kernel) -> Iterator[EngineCheck]:
    """Check for the program zstd if the kernel needs it: Ubuntu compresses modules with zstd, which Python lacks."""
    if _is_packed_with_zstd(kernel) and shutil.which("zstd") is None:
        yield EngineCheck(
            "zstd",
            "missing",
            f"not found in PATH; needed to unpack {kernel.origin}",
            Fix(packages=packages(["zstd"])),
        )


def _is_packed_with_zstd(kernel: Kernel) -> bool:
    """Whether the kernel's packages (judging by their first archive) or installed modules are compressed with zstd."""
    if kernel.packages:
        return any(b"control.tar.zst" in _beginning(package) for package in kernel.packages)
    return any((kernel.root / "lib/modules" / kernel.release).rglob("*.ko.zst"))


def _beginning(package: Path) -> bytes:
    with package.open("rb") as file:
        return file.read(_FIRST_MEMBERS_BYTES)


def _cache() -> EngineCheck:
    root = cache.root()
    there = next(path for path in (root, *root.parents) if path.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        return EngineCheck("cache", "missing", f"{there} is not writable: set XDG_CACHE_HOME to a directory that is")
    free = shutil.disk_usage(there).free
    if free < ROOM_BYTES and not any((root / "states").glob("[!.]*")):
        mib = f"{free >> 20} of {ROOM_BYTES >> 20} MiB"
        return EngineCheck(
            "cache", "missing", f"{there} has room for {mib}: set XDG_CACHE_HOME to a directory with more"
        )
    return EngineCheck("cache", "ready", str(root), NOTHING)
