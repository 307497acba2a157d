"""The programs the guest borrows from this machine: `ip`, `tc`, `ethtool`, with the shared libraries they load."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from .errors import GuestError
from .initramfs import Initramfs

PROGRAMS = {"ip": "iproute2", "tc": "iproute2", "ethtool": "ethtool"}
"""Program and the Debian package that has it."""

SBIN = "/usr/sbin:/sbin:/usr/local/sbin"
"""Where distributions put them; ordinary users often lack the `sbin` directories in PATH."""
_LIBRARY = re.compile(r"(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)")


def add_programs(root: Initramfs) -> None:
    """Put every program of `PROGRAMS` at `/usr/sbin/NAME`, and its libraries where its loader looks for them."""
    paths = {name: find(name) for name in PROGRAMS}
    if missing := [name for name, path in paths.items() if path is None]:
        packages = " ".join(sorted({PROGRAMS[name] for name in missing}))
        raise GuestError(f"{', '.join(missing)} not found, and the guest needs them: apt-get install {packages}")
    for name, path in paths.items():
        assert path is not None
        root.file(f"/usr/sbin/{name}", Path(path).read_bytes(), executable=True)
        for library in shared_libraries(path):
            root.file(library, Path(library).read_bytes(), executable=True)


def find(name: str) -> str | None:
    """Path of a program, in PATH or where distributions put those for root."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{SBIN}")


def shared_libraries(program: str) -> list[str]:
    """Absolute paths of the libraries, loader included, that `program` needs on this machine."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    if "not a dynamic executable" in done.stderr + done.stdout:
        return []
    if done.returncode != 0 or "not found" in done.stdout:
        raise GuestError(f"ldd {program}: {(done.stderr or done.stdout).strip()}")
    return sorted({match[1] for match in map(_LIBRARY.search, done.stdout.splitlines()) if match})
