"""The system that `doctor` examines: its distribution and package manager, its kernel's settings and modules."""

import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class _Packager:
    """How a family of distributions installs packages."""

    install: str
    names: Mapping[str, str]
    """Its names for Debian's packages, if they differ from Debian's."""


_PACKAGERS: Mapping[str, _Packager] = {
    "debian": _Packager("apt-get install --yes", {}),
    "fedora": _Packager(
        "dnf install --assumeyes", {"qemu-system-x86": "qemu-system-x86-core", "iproute2": "iproute iproute-tc"}
    ),
    "arch": _Packager("pacman -S --needed --noconfirm", {}),
    "opensuse": _Packager("zypper --non-interactive install", {"qemu-system-x86": "qemu-x86"}),
    "alpine": _Packager("apk add", {"qemu-system-x86": "qemu-system-x86_64"}),
}
"""The keys are values of `ID` in os-release(5), or words of its `ID_LIKE`."""

_APT_LISTS = "var/lib/apt/lists"


@dataclass(frozen=True)
class System:
    """A system below a root directory: `/` of this machine, or a directory made for a test."""

    root: Path = Path("/")
    is_root: bool = os.geteuid() == 0
    kernel: str = platform.release()
    """The running kernel's release."""

    def setting(self, name: str) -> int | None:
        """A numeric kernel setting, by its dotted name; None if the kernel has no such setting."""
        text = self._text(f"proc/sys/{name.replace('.', '/')}").strip()
        return int(text) if text.isdecimal() else None

    def has_module(self, name: str) -> bool:
        """Whether a module of the running kernel is installed, loaded or not."""
        listed = self._text(f"lib/modules/{self.kernel}/modules.dep")
        return re.search(rf"(^|/){re.escape(name)}\.ko(\.\w+)?:", listed, re.MULTILINE) is not None

    @property
    def distribution(self) -> str:
        """The distribution's name, such as `debian` or `ubuntu`; empty if the system does not say."""
        return (self._families or [""])[0]

    def can_install(self) -> bool:
        """Whether the command that installs packages is known."""
        return self._packager is not None

    def install(self, packages: Sequence[str]) -> list[str]:
        """The commands that install these packages, given by Debian name; none if the package manager is not known."""
        if not packages or self._packager is None:
            return []
        names = " ".join(self._packager.names.get(package, package) for package in packages)
        install = self.as_root(f"{self._packager.install} {names}")
        return [self.as_root("apt-get update"), install] if self._lacks_package_lists else [install]

    def as_root(self, command: str) -> str:
        """The command as this user has to enter it: with sudo, unless the user is root."""
        return command if self.is_root else f"sudo {command}"

    @cached_property
    def _families(self) -> list[str]:
        """The distribution's own name, then the names in its `ID_LIKE`."""
        fields = dict(re.findall(r"^(ID|ID_LIKE)=(.*)$", self._text("etc/os-release"), re.MULTILINE))
        return [word for key in ("ID", "ID_LIKE") for word in fields.get(key, "").strip("\"'").split()]

    @property
    def _packager(self) -> _Packager | None:
        return next((_PACKAGERS[family] for family in self._families if family in _PACKAGERS), None)

    @property
    def _lacks_package_lists(self) -> bool:
        """Whether apt knows no packages at all, as in a fresh container."""
        has_lists = any((self.root / _APT_LISTS).glob("*_Packages*"))
        return self._packager is _PACKAGERS["debian"] and not has_lists

    def _text(self, path: str) -> str:
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
