"""Undo the compressions that distributions use for packages and kernel modules."""

import gzip
import lzma
import shutil
import subprocess

from .errors import GuestError

SUFFIXES = (".xz", ".gz", ".zst")
"""Endings that `decompressed` understands."""


def decompressed(name: str, data: bytes) -> bytes:
    """The content of a file called `name`, decompressed as its ending says; other endings are returned as they are."""
    if name.endswith(".xz"):
        return lzma.decompress(data)
    if name.endswith(".gz"):
        return gzip.decompress(data)
    if name.endswith(".zst"):
        return _zstd(name, data)
    return data


def without_suffix(name: str) -> str:
    """`sch_codel.ko.xz` -> `sch_codel.ko`."""
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def _zstd(name: str, data: bytes) -> bytes:
    # Python has zstd only from 3.14 on; the program is part of every distribution that packs its kernels this way.
    program = shutil.which("zstd")
    if program is None:
        raise GuestError(f"{name} is packed with zstd, and the program zstd is not installed: apt-get install zstd")
    done = subprocess.run([program, "-dc"], input=data, capture_output=True, check=False)
    if done.returncode != 0:
        raise GuestError(f"{name}: {done.stderr.decode(errors='replace').strip() or 'not a zstd file'}")
    return done.stdout
