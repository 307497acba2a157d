"""Where a kernel's files come from: Debian packages, or a directory such as `/`.

Paths are relative and without a leading `./`; `usr/lib/...` is read as `lib/...`, because distributions differ in
whether their packages name the merged directory.
"""

import io
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

from bufferscope.engines.guest.compression import decompressed
from bufferscope.engines.guest.errors import GuestError

_AR_MAGIC = b"!<arch>\n"
_AR_HEADER_BYTES = 60


class Files(Protocol):
    """A tree of files that can be listed and read."""

    def names(self) -> list[str]:
        """Paths of all regular files, sorted."""
        ...

    def read(self, name: str) -> bytes:
        """Content of one of `names`."""
        ...


class PackageFiles:
    """The files of one or several Debian packages, read without dpkg."""

    def __init__(self, packages: Iterable[Path]) -> None:
        self._members: dict[str, tuple[tarfile.TarFile, tarfile.TarInfo]] = {}
        self._packages: dict[str, Path] = {}
        for package in packages:
            # The archive stays open and in memory as long as files may be read from it.
            with damage(package):
                archive = tarfile.open(fileobj=io.BytesIO(_data_archive(package)), mode="r:")  # noqa: SIM115
                for member in archive:
                    if member.isfile():
                        self._members[_plain(member.name)] = (archive, member)
                        self._packages[_plain(member.name)] = package

    def names(self) -> list[str]:
        return sorted(self._members)

    def read(self, name: str) -> bytes:
        with damage(name):
            return self.opened(name).read()

    def opened(self, name: str) -> IO[bytes]:
        """One of `names`, to be read piece by piece."""
        archive, member = self._members[name]
        content = archive.extractfile(member)
        assert content is not None, f"{name} is a regular file"
        return content

    def holding(self, prefixes: tuple[str, ...]) -> tuple[Path, ...]:
        """The packages with files whose names begin like this."""
        found = (package for name, package in self._packages.items() if name.startswith(prefixes))
        return tuple(dict.fromkeys(found))


class DirectoryFiles:
    """The kernel files of an installed system: `boot` and `lib/modules` below a root directory."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def names(self) -> list[str]:
        found: list[str] = []
        for top in ("boot", "lib/modules"):
            directory = self._root / top
            found += (str(path.relative_to(self._root)) for path in directory.rglob("*") if path.is_file())
        return sorted(found)

    def read(self, name: str) -> bytes:
        try:
            return (self._root / name).read_bytes()
        except PermissionError as error:
            # On Ubuntu only root may read installed kernels.
            raise GuestError(
                f"{self._root / name} may not be read by this user: run `sudo chmod a+r {self._root / name}`, "
                "or give a kernel package with --deb"
            ) from error


def unpack(package: Path, target: Path) -> None:
    """Unpack the files of a Debian package, links included, below a directory."""
    with damage(package), tarfile.open(fileobj=io.BytesIO(_data_archive(package)), mode="r:") as archive:
        archive.extractall(target, filter="data")


@contextmanager
def damage(where: object) -> Iterator[None]:
    """Turn the errors that a damaged archive causes into a `GuestError` that names the archive."""
    try:
        yield
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        raise GuestError(f"{where}: damaged archive: {error}") from error


def _plain(name: str) -> str:
    return name.removeprefix("./").removeprefix("usr/")


def _data_archive(package: Path) -> bytes:
    """The tar archive of installed files inside a .deb, which is an `ar` archive (deb(5)).

    The package python-debian reads it too, but is under the GPL.
    """
    data = package.read_bytes()
    if not data.startswith(_AR_MAGIC):
        raise GuestError(f"{package} is not a Debian package (it does not begin with an ar archive's `!<arch>`)")
    offset = len(_AR_MAGIC)
    while offset + _AR_HEADER_BYTES <= len(data):
        header = data[offset : offset + _AR_HEADER_BYTES]
        name = header[:16].decode(errors="replace").rstrip().rstrip("/")
        offset += _AR_HEADER_BYTES
        size = _decimal(header[48:58], package)
        if name.startswith("data.tar"):
            content = data[offset : offset + size]
            if len(content) != size:
                break
            return decompressed(name, content)
        offset += size + size % 2
    raise GuestError(f"{package} ends before its data.tar does: the file is damaged or only partly downloaded")


def _decimal(field: bytes, package: Path) -> int:
    text = field.rstrip(b" ")
    if not text.isdigit():
        raise GuestError(f"{package}: damaged ar header (a member's size is {field!r})")
    return int(text)
