"""The kernels on this machine: installed, or in packages that were fetched or given."""

import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import file_digest, sha256
from pathlib import Path

from bufferscope.engines.guest import DEFAULT, cache
from bufferscope.engines.guest.errors import GuestError
from bufferscope.engines.guest.files import DirectoryFiles, Files, PackageFiles

_RELEASE = re.compile(r"(\d+)\.(\d+)")
_PLAIN = re.compile(r"\d[\w.+~-]*", re.ASCII)
"""The characters of a release, all safe in a file name."""
_PACKAGED_RELEASE = re.compile(r"linux-(?:image|binary)-(?:unsigned-)?([^_]+)_")
PARTS = ("binary", "modules", "base")
"""Debian packages recent kernels in these parts: `linux-binary-RELEASE` is the kernel, `linux-base-RELEASE` lists its
built-in modules, and `linux-image-RELEASE` only depends on the others."""
_IMAGE = re.compile(r"boot/vmlinuz-([^/]+)|lib/modules/([^/]+)/vmlinuz")
"""Where packages have the kernel: in `boot`, or beside its modules, as Debian's of Linux 7 and Fedora's."""


@dataclass(frozen=True)
class Kernel:
    """A Linux kernel with its modules, not yet opened."""

    release: str
    """As `uname -r` prints it: `6.1.0-56-cloud-amd64`."""
    packages: tuple[Path, ...]
    """The Debian packages that contain it; empty if it is installed below `root`."""
    root: Path = Path("/")

    @property
    def series(self) -> str:
        """`6.1` for `6.1.0-56-cloud-amd64`."""
        return series_of(self.release)

    @property
    def origin(self) -> str:
        """Where it comes from, in words."""
        return ", ".join(package.name for package in self.packages) or str(self.root / "boot")

    @cached_property
    def files(self) -> Files:
        """Its files, opened."""
        return PackageFiles(self.packages) if self.packages else DirectoryFiles(self.root)

    def image(self) -> bytes:
        """The bootable kernel."""
        names = [name for name in self.files.names() if _image_release(name) == self.release]
        if not names:
            raise GuestError(f"{self.origin} has no boot/vmlinuz-{self.release}")
        return self.files.read(names[0])

    def identity(self) -> str:
        """A hash that changes when the kernel or its modules change, but not with the order of the packages."""
        parts = [self.release, *sorted(_digest(package) for package in self.packages)]
        if not self.packages:
            parts.append(sha256(self.image()).hexdigest())
            modules = self.root / "lib/modules" / self.release
            parts += (
                f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in sorted(modules.rglob("*.ko*"))
            )
        return sha256("\n".join(parts).encode()).hexdigest()


def series_of(release: str) -> str:
    """The series of a release: `6.12` for `6.12.38+deb13-cloud-amd64`."""
    match = _RELEASE.match(release)
    if match is None:
        raise GuestError(f"{release!r} is not a kernel release such as 6.1.0-56-cloud-amd64")
    return f"{match[1]}.{match[2]}"


def from_packages(packages: Iterable[Path]) -> Kernel:
    """The kernel in these Debian packages: one with a kernel image, and others if its modules are separate.

    Packages without a part of it are left out.
    """
    packages = tuple(packages)
    for package in packages:
        if not package.is_file():
            raise GuestError(f"{package}: no such file")
    files = PackageFiles(packages)
    names = files.names()
    given = ", ".join(map(str, packages))
    releases = sorted({release for release in map(_image_release, names) if release})
    if len(releases) != 1:
        found = ", ".join(releases) or "none"
        raise GuestError(
            f"{given}: expected one kernel (boot/vmlinuz-* or lib/modules/*/vmlinuz), found {found}{_hint(packages)}"
        )
    (release,) = releases
    tree = f"lib/modules/{release}"
    if not any(name.startswith(f"{tree}/kernel/") for name in names):
        raise GuestError(f"{given}: no modules of {release}: give linux-modules-{release}, too")
    if f"{tree}/vmlinuz" in names and f"{tree}/modules.builtin" not in names:
        raise GuestError(f"{given}: no list of its built-in modules: give linux-base-{release}, too")
    return Kernel(release, files.holding(("boot/", "lib/modules/")))


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return file_digest(opened, "sha256").hexdigest()


def _image_release(name: str) -> str | None:
    """The release of the kernel that a file of this name is, if it is one."""
    match = _IMAGE.fullmatch(name)
    release = (match[1] or match[2]) if match else None
    return release if release and _PLAIN.fullmatch(release) else None


def _hint(packages: Iterable[Path]) -> str:
    """What to give instead of a package that only depends on those that contain the kernel."""
    for package in packages:
        if package.name.startswith("linux-image-") and (match := _PACKAGED_RELEASE.match(package.name)):
            others = ", ".join(f"linux-{part}-{match[1]}" for part in PARTS)
            return f"; if this package only depends on others, give {others}"
    return ""


def fetched() -> list[Kernel]:
    """Kernels whose packages are in the cache, oldest series first."""
    kernels = []
    for package in cache.directory("packages").glob("linux-*.deb"):
        if match := _PACKAGED_RELEASE.match(package.name):
            modules = sorted(package.parent.glob(f"linux-modules-*{match[1]}_*.deb"))
            kernels.append(Kernel(match[1], (package, *modules, *package.parent.glob(f"linux-base-{match[1]}_*.deb"))))
    return sorted(kernels, key=_age)


def installed(root: Path = Path("/")) -> list[Kernel]:
    """Kernels in `/boot`, or beside their modules, with modules in `/lib/modules`."""
    images = [*(root / "boot").glob("vmlinuz-*"), *(root / "lib/modules").glob("*/vmlinuz")]
    releases = {_image_release(str(path.relative_to(root))) for path in images}
    with_modules = {each for each in releases if each and (root / "lib/modules" / each / "kernel").is_dir()}
    return sorted((Kernel(each, (), root) for each in with_modules if _RELEASE.match(each)), key=_age)


def at_hand() -> list[Kernel]:
    """Fetched kernels, then installed ones."""
    return [*fetched(), *installed()]


def matching(wanted: str, kernels: Iterable[Kernel]) -> Kernel | None:
    """The newest kernel of a series (`6.12`) or release; fetched ones come before installed ones."""
    found = [kernel for kernel in kernels if wanted in (kernel.series, kernel.release)]
    return max(found, key=lambda kernel: (bool(kernel.packages), _age(kernel)), default=None)


def choose(wanted: str | None) -> Kernel:
    """The kernel on this machine with this name; without a name, one of series `DEFAULT`, or the newest if none is."""
    known = at_hand()
    chosen = matching(wanted or DEFAULT, known)
    if chosen is None and wanted is None:
        chosen = max(known, key=lambda kernel: (bool(kernel.packages), _age(kernel)), default=None)
    if chosen is None:
        there = ", ".join(kernel.release for kernel in known) or "none"
        raise GuestError(
            f"no kernel {wanted or DEFAULT} available (found: {there}): "
            f"run `bufferscope guest build --kernel {wanted or DEFAULT}`"
        )
    return chosen


def adopt(packages: Iterable[Path]) -> Kernel:
    """Copy the given packages into the cache, so that later runs find their kernel by its name."""
    given = from_packages(packages)
    target = cache.directory("packages")
    copies = []
    for package in given.packages:
        with tempfile.NamedTemporaryFile(prefix=".partial-", dir=target) as partial:
            partial.write(package.read_bytes())
            partial.flush()
            copy = target / package.name
            copy.unlink(missing_ok=True)
            copy.hardlink_to(partial.name)
        copies.append(copy)
    return Kernel(given.release, tuple(copies))


def _age(kernel: Kernel) -> list[int]:
    return version_key(kernel.release)


def version_key(text: str) -> list[int]:
    """Orders kernel releases by their numbers: 6.9 before 6.12. They are not versions of Debian packages."""
    return [int(number) for number in re.findall(r"\d+", text)]
