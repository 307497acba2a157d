"""An initial RAM file system: a cpio archive in the kernel's `newc` format, with the same bytes for the same content.

Format: Documentation/driver-api/early-userspace/buffer-format.rst of the kernel. The owner is root, times are zero,
inodes are numbered from 1 and entries are sorted, so an image's hash depends only on its content.
"""

import stat
from pathlib import PurePosixPath

_TRAILER = "TRAILER!!!"


class Initramfs:
    """Collects files, links and directories; `archive` packs them."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[int, bytes]] = {}

    def directory(self, path: str) -> None:
        """Add a directory and its parents."""
        for parent in (*reversed(PurePosixPath(_relative(path)).parents), PurePosixPath(_relative(path))):
            if str(parent) != ".":
                self._entries.setdefault(str(parent), (stat.S_IFDIR | 0o755, b""))

    def file(self, path: str, content: bytes, *, executable: bool = False) -> None:
        """Add a regular file."""
        self._add(path, stat.S_IFREG | (0o755 if executable else 0o644), content)

    def symlink(self, path: str, target: str) -> None:
        """Add a symbolic link."""
        self._add(path, stat.S_IFLNK | 0o777, target.encode())

    def archive(self) -> bytes:
        """The archive: sorted, so that directories precede their entries."""
        parts = [
            _record(inode, name, mode, content)
            for inode, (name, (mode, content)) in enumerate(sorted(self._entries.items()), start=1)
        ]
        return b"".join([*parts, _record(0, _TRAILER, 0, b"")])

    def _add(self, path: str, mode: int, content: bytes) -> None:
        self.directory(str(PurePosixPath(_relative(path)).parent))
        self._entries[_relative(path)] = (mode, content)


def _relative(path: str) -> str:
    return path.strip("/") or "."


def _record(inode: int, name: str, mode: int, content: bytes) -> bytes:
    links = 2 if stat.S_ISDIR(mode) else 1
    raw_name = name.encode() + b"\0"
    fields = (inode, mode, 0, 0, links, 0, len(content), 0, 0, 0, 0, len(raw_name), 0)
    header = b"070701" + b"".join(b"%08x" % field for field in fields)
    return _padded(header + raw_name) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
