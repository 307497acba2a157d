"""Fetch kernel packages with apt, without root: `apt-get download`, if necessary from another Debian release."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bufferscope.engines.guest import cache
from bufferscope.engines.guest.errors import GuestError
from bufferscope.engines.guest.kernels import PARTS, Kernel, from_packages, series_of, version_key

SUITES = {"6.1": "bookworm", "6.12": "trixie"}
"""For each kernel series, the Debian release that has it."""
NEWER = "trixie-backports"
"""Where Debian has newer kernels: one or two series at a time."""

_FLAVOURS = ("cloud-amd64", "amd64", "virtual", "generic")
"""Kernel flavours that suit a virtual machine, best first."""
_PACKAGE = re.compile(rf"linux-image-(\d+\.\d+[\w.+~]*(?:-\d+)?)-({'|'.join(_FLAVOURS)})", re.ASCII)
_SERIES = re.compile(r"\d+\.\d+")
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_TIMEOUT_S = 300
_DOWNLOAD_TIMEOUT_S = 1800


@dataclass(frozen=True)
class _Apt:
    """Programs of apt, run with these options; without options they use the system's own package lists."""

    options: tuple[str, ...] = ()

    def download(self, packages: Iterable[str], target: Path) -> list[Path]:
        """Download packages (`NAME` or `NAME=VERSION`) to an empty directory."""
        self.run("apt-get", "download", "-q", *_as_this_user(), *packages, cwd=target, timeout_s=_DOWNLOAD_TIMEOUT_S)
        return sorted(target.glob("*.deb"))

    def run(self, program: str, *arguments: str, cwd: Path | None = None, timeout_s: int = _TIMEOUT_S) -> str:
        command = [program, *self.options, *arguments]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", cwd=cwd, timeout=timeout_s, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise GuestError(f"{' '.join(command)}: not done within {timeout_s} s") from error
        if done.returncode != 0:
            raise GuestError(f"{' '.join(command)}: {_last_line(done.stderr)}")
        return done.stdout

    def best(self, wanted: str) -> str | None:
        """The package of the newest kernel that `wanted` (a series or a release) names."""
        found = [match for match in self._kernels() if wanted in (series_of(match[1]), f"{match[1]}-{match[2]}")]
        newest = max(found, key=lambda match: (-_FLAVOURS.index(match[2]), version_key(match[1])), default=None)
        return newest[0] if newest else None

    def offered(self) -> list[str]:
        """Releases of the newest kernel of each series in the package lists."""
        releases = [match[0].removeprefix("linux-image-") for match in self._kernels()]
        newest: dict[str, str] = {}
        for release in sorted((r for r in releases if r.endswith(_FLAVOURS[0])), key=version_key):
            newest[series_of(release)] = release
        return list(newest.values())

    def names(self) -> set[str]:
        """All packages of Linux."""
        return set(self.run("apt-cache", "pkgnames", "linux-").split())

    def _kernels(self) -> list[re.Match[str]]:
        """The kernels of which all parts can be fetched: a suite may still have some part of one that it had."""
        known = self.names()
        found = [match for match in map(_PACKAGE.fullmatch, known) if match]
        return [match for match in found if known.issuperset(_parts(match[0], known))]


def fetch(wanted: str) -> Kernel:
    """Download a kernel into the cache: the newest one of a series (`6.12`), or the named release."""
    if shutil.which("apt-get") is None:
        raise GuestError(
            f"no kernel {wanted} available, and this machine has no apt-get to fetch one: "
            "download a linux-image-*-cloud-amd64 package from Debian and give it with --deb FILE"
        )
    apt = _Apt()
    if package := apt.best(wanted):
        return _download(apt, package)
    if (suite := _suite(wanted)) is None:
        raise GuestError(
            f"apt knows no kernel {wanted}: choose {', '.join(SUITES)} or a newer one of Debian's {NEWER}, "
            "or give packages with --deb FILE"
        )
    with other_release(suite) as apt:
        package = apt.best(wanted)
        if package is None:
            there = ", ".join(map(series_of, apt.offered())) or "none"
            raise GuestError(
                f"Debian's {suite} has no kernel {wanted} (series there: {there}): give packages with --deb FILE"
            )
        return _download(apt, package)


def _suite(wanted: str) -> str | None:
    """The Debian release that may have a kernel."""
    if not _SERIES.match(wanted):
        return None
    newest = max(SUITES, key=version_key)
    return SUITES.get(series_of(wanted)) or (NEWER if version_key(wanted)[:2] > version_key(newest) else None)


def can_fetch() -> bool:
    """Whether apt knows a source of kernels; this does not check that the source can be reached."""
    if shutil.which("apt-get") is None or shutil.which("apt-cache") is None:
        return False
    try:
        return bool(offered() or _debian_mirrors())
    except GuestError:
        return False


def offered() -> list[str]:
    """Releases of the newest kernel of each series in the system's package lists; empty without apt."""
    if shutil.which("apt-cache") is None:
        return []
    return _Apt().offered()


def _download(apt: _Apt, package: str) -> Kernel:
    target = cache.directory("packages")
    parts = _parts(package, apt.names())
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=target) as partial:
        fetched = apt.download(parts, Path(partial))
        from_packages(fetched)  # which refuses what is no kernel before it is kept
        return from_packages(path.rename(target / path.name) for path in fetched)


def _parts(package: str, known: set[str]) -> list[str]:
    """The packages that together contain the kernel of a `linux-image-*`."""
    release = package.removeprefix("linux-image-")
    if f"linux-binary-{release}" in known:
        return [f"linux-{part}-{release}" for part in PARTS]
    # Ubuntu packages modules separately from the kernel, and the rarer ones in yet another package.
    modules = [f"linux-modules-{release}", f"linux-modules-extra-{release}"]
    return [package, *(each for each in modules if each in known)]


@contextmanager
def other_release(*suites: str) -> Iterator[_Apt]:
    """Programs of apt with separate state; their only source are other suites on this system's Debian mirror."""
    with tempfile.TemporaryDirectory(prefix="bufferscope-apt-") as directory:
        yield _with_own_state(suites, Path(directory))


def _with_own_state(suites: Iterable[str], state: Path) -> _Apt:
    for directory in ("lists/partial", "cache/archives/partial"):
        (state / directory).mkdir(parents=True)
    (state / "status").touch()
    sources = state / "sources.list"
    signed = f"[signed-by={_KEYRING}] " if _KEYRING.exists() else ""
    mirrors = _debian_mirrors()
    sources.write_text("".join(f"deb {signed}{mirror} {suite} main\n" for suite in suites for mirror in mirrors))
    options = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "-",
        "Dir::State": state,
        "Dir::State::lists": state / "lists",
        "Dir::State::status": state / "status",
        "Dir::Cache": state / "cache",
        "Acquire::Languages": "none",
    }
    apt = _Apt(tuple(f"-o{key}={value}" for key, value in options.items()))
    apt.run("apt-get", "update", "-q", *_as_this_user())
    return apt


def _debian_mirrors() -> list[str]:
    command = ("indextargets", "--format", "$(ORIGIN) $(COMPONENT) $(REPO_URI)", "Created-By: Packages")
    targets = dict.fromkeys(_Apt().run("apt-get", *command).splitlines())
    prefix = "Debian main "
    mirrors = [target.removeprefix(prefix) for target in targets if target.startswith(prefix)]
    mirrors = [mirror for mirror in mirrors if "security" not in mirror]
    if not mirrors:
        raise GuestError(
            "apt's package lists name no Debian mirror: run `apt-get update` on a Debian machine, "
            "or download a linux-image-*-cloud-amd64 package and give it with --deb FILE"
        )
    return mirrors


def _as_this_user() -> list[str]:
    # apt's own user may not write to root's temporary directory.
    return ["-oAPT::Sandbox::User=root"] if os.geteuid() == 0 else []


def _last_line(text: str) -> str:
    lines = (
        [line for line in text.splitlines() if line.startswith("E:")]
        or text.splitlines()
        or ["it failed without a message"]
    )
    return lines[-1]
