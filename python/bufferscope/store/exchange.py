"""Exchange the names of two directories in one step, so that no reader ever finds one of the names missing."""

import ctypes
import errno
import os
import sys
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
"""From `linux/fcntl.h` and `linux/fs.h`."""
_RENAME_SWAP = 2
"""From macOS' `sys/stdio.h`."""


def exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two directories of one file system.

    Returns False if the operating system or the file system cannot do that. Raises `OSError` as renaming does. Python
    has no function for it, so this calls renameat2(2) on Linux and renamex_np(2) on macOS.
    """
    library = ctypes.CDLL(None, use_errno=True)
    names = (os.fsencode(one), os.fsencode(other))
    try:
        if sys.platform == "darwin":
            failed = library.renamex_np(*names, _RENAME_SWAP)
        else:
            failed = library.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE)
    except AttributeError:  # a C library without the call
        return False
    if not failed:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), str(one), None, str(other))
