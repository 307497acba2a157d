"""Decompress the formats that distributions use for packages and kernel modules."""

import lzma
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Callable
from typing import Protocol

from bufferscope.base import programs
from bufferscope.engines.guest.errors import GuestError

SUFFIXES = (".xz", ".gz", ".zst")
"""Endings that `decompressed` understands."""
MOST_BYTES = 2 << 30
"""The largest kernel packages unpack to a quarter of this; larger content is not from a kernel package."""

_GZIP_HEADER = 16 + zlib.MAX_WBITS


class _Unpacker(Protocol):
    """The interface of the decompressors of `lzma` and `zlib`."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def decompressed(name: str, data: bytes, most: int = MOST_BYTES) -> bytes:
    """The content of a file called `name`, decompressed as its ending says; unchanged for any other ending."""
    if name.endswith(".xz"):
        return _unpacked(name, data, lzma.LZMADecompressor, most)
    if name.endswith(".gz"):
        return _unpacked(name, data, lambda: zlib.decompressobj(_GZIP_HEADER), most)
    if name.endswith(".zst"):
        return _zstd(name, data, most)
    return data


def without_suffix(name: str) -> str:
    """`sch_codel.ko.xz` -> `sch_codel.ko`."""
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def _unpacked(name: str, data: bytes, unpacker: Callable[[], _Unpacker], most: int) -> bytes:
    """All streams of a file, one after the other; zeros may follow as padding."""
    parts: list[bytes] = []
    left = most
    while data.strip(b"\0") or not parts:
        stream = unpacker()
        try:
            parts.append(stream.decompress(data, left + 1))
        except (lzma.LZMAError, zlib.error) as error:
            raise GuestError(f"{name}: {error}") from error
        left -= len(parts[-1])
        if left < 0:
            raise _too_large(name, most)
        if not stream.eof:
            raise GuestError(f"{name} is truncated: it is damaged or only partly downloaded")
        data = stream.unused_data
    return b"".join(parts)


def _zstd(name: str, data: bytes, most: int) -> bytes:
    # Python has zstd only from 3.14 on; every distribution that compresses its kernels with zstd has the program.
    program = shutil.which("zstd")
    if program is None:
        zstd = " ".join(programs.packages(["zstd"]))
        raise GuestError(
            f"{name} is compressed with zstd, and the program zstd is not installed: apt-get install {zstd}"
        )
    with tempfile.TemporaryFile() as packed, tempfile.TemporaryFile() as complaints:
        packed.write(data)
        packed.seek(0)
        with subprocess.Popen([program, "-dc"], stdin=packed, stdout=subprocess.PIPE, stderr=complaints) as process:
            assert process.stdout is not None
            content = process.stdout.read(most + 1)
            if len(content) > most:
                process.kill()
                raise _too_large(name, most)
        complaints.seek(0)
        if process.returncode != 0:
            raise GuestError(f"{name}: {complaints.read(1000).decode(errors='replace').strip() or 'not a zstd file'}")
    return content


def _too_large(name: str, most: int) -> GuestError:
    return GuestError(f"{name} unpacks to more than {most} bytes: it is not part of a kernel")
