"""Build a module that a distribution leaves out, from its packages of the kernel's source and headers.

The packages are fetched with apt and unpacked in a temporary directory; only the module is kept.
"""

import shutil
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from bufferscope.base import programs
from bufferscope.engines.guest import cache, extra_modules, fetch, kbuild, modules
from bufferscope.engines.guest.errors import GuestError
from bufferscope.engines.guest.extra_modules import ExtraModule
from bufferscope.engines.guest.files import PackageFiles, damage, unpack
from bufferscope.engines.guest.kernels import Kernel, series_of, version_key

FETCHED_MB = 185
"""The packages for a module of Linux 7.3; the kernel's source alone has 167."""
_ROOM_BYTES = 700 << 20
"""Disk space for these packages and the unpacked headers."""
_PROGRAMS = ("cc", "ld", "make")
_LIBRARIES = ("libc6", "libelf1t64", "libzstd1", "zlib1g")
"""What the programs of Debian's linux-kbuild load; this machine's may be older."""


def build(wanted: ExtraModule, kernel: Kernel, note: Callable[[str], None]) -> None:
    """Build a module for a kernel into the cache, unless it is there or the kernel comes with it."""
    identity = kernel.identity()
    with cache.lock("modules"):
        if extra_modules.has(kernel, wanted):
            return
        _check(wanted, kernel)
        with tempfile.TemporaryDirectory(prefix="bufferscope-module-") as temporary:
            content = _built(wanted, kernel, Path(temporary), note)
        with cache.new_directory(extra_modules.directory(identity)) as partial:
            (partial / f"{wanted.module}.ko").write_bytes(content)


def _check(wanted: ExtraModule, kernel: Kernel) -> None:
    """Refuse what cannot succeed before anything is fetched."""
    if version_key(kernel.series) < version_key(wanted.since):
        raise GuestError(
            f"{wanted.module} came with Linux {wanted.since}, and this is {kernel.release}: choose a newer --kernel"
        )
    if not kernel.packages or not kernel.release.endswith("-amd64") or "+deb" not in kernel.release:
        raise GuestError(
            f"{wanted.module} can be built only for Debian's kernels that `guest build` has fetched, "
            f"not for {kernel.release} ({kernel.origin})"
        )
    if missing := [name for name in _PROGRAMS if shutil.which(name) is None]:
        raise GuestError(
            f"{', '.join(missing)} not found, and {wanted.module} must be compiled: "
            f"apt-get install {' '.join(programs.packages(missing))}"
        )
    where = Path(tempfile.gettempdir())
    if (free := shutil.disk_usage(where).free) < _ROOM_BYTES:
        raise GuestError(
            f"{where} has room for {free >> 20} MiB, and building {wanted.module} takes {_ROOM_BYTES >> 20}: "
            "set TMPDIR to a directory with more"
        )


def _built(wanted: ExtraModule, kernel: Kernel, temporary: Path, note: Callable[[str], None]) -> bytes:
    note(f"fetching the source and headers of Linux {kernel.release} ({FETCHED_MB} MB)")
    packages = _fetched(kernel, _made(temporary / "packages"))
    note("unpacking them")
    tree = _made(temporary / "tree")
    source = None
    for package in packages:
        if package.name.startswith("linux-source-"):
            source = _source_file(package, wanted.source)
        else:
            unpack(package, tree)
        package.unlink()
    if source is None:
        raise GuestError(f"Debian's source of Linux {kernel.release} has no {wanted.source}")
    note(f"compiling {wanted.module}")
    content = kbuild.compile_module(tree, kernel.release, wanted.module, source)
    magic, usual = (
        modules.version_magic(content, wanted.module),
        modules.usual_magic(kernel.files, kernel.release),
    )
    if magic != usual:
        raise GuestError(f"{wanted.module} was compiled for `{magic}`, and {kernel.release} loads only `{usual}`")
    return content


def _fetched(kernel: Kernel, target: Path) -> list[Path]:
    try:
        with fetch.other_release(fetch.SUITES[max(fetch.SUITES, key=version_key)], fetch.NEWER) as apt:
            return apt.download(package_names(kernel), target)
    except GuestError as error:
        raise GuestError(
            f"{error} (the mirror may no longer have what belongs to {kernel.release}: "
            "`bufferscope guest build --kernel` with the series that it has now fetches a newer kernel)"
        ) from error


def package_names(kernel: Kernel) -> list[str]:
    """The packages that building a module takes, as apt names them; those of the kernel in exactly its version."""
    version = kernel.packages[0].name.split("_")[1]
    build, _, _ = kernel.release.partition("-")
    of_kernel = (
        f"linux-headers-{kernel.release}",
        f"linux-headers-{build}-common",
        f"linux-kbuild-{build}",
        f"linux-source-{series_of(kernel.release)}",
    )
    return [*(f"{name}={version}" for name in of_kernel), *_LIBRARIES]


def _source_file(package: Path, wanted: str) -> bytes | None:
    """A file of the kernel's source, which is an archive inside its package."""
    files = PackageFiles([package])
    archives = [name for name in files.names() if name.endswith(".tar.xz") and "linux-source" in name]
    for archive in archives:
        with damage(archive), tarfile.open(fileobj=files.opened(archive), mode="r|xz") as tar:
            for member in tar:
                if member.isfile() and member.name.partition("/")[2] == wanted:
                    content = tar.extractfile(member)
                    assert content is not None, f"{wanted} is a regular file"
                    return content.read()
    return None


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory
