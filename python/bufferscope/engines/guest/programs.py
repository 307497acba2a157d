"""The programs that the guest borrows from this machine, with the shared libraries and tables that they load.

`ip`, `tc` and `ethtool` are for the agent. A guest for a user's own programs also gets those of `TOOLS` that this
machine has.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from bufferscope.base import programs
from bufferscope.base.commit import PACKAGE
from bufferscope.engines.guest.errors import GuestError
from bufferscope.engines.guest.initramfs import Initramfs

BORROWED = ("ip", "tc", "ethtool")
"""Programs in every guest."""

TOOLS = (
    *(
        "sh",
        "bash",
        "env",
        "stty",
        "clear",
        "cat",
        "cp",
        "cut",
        "date",
        "dd",
        "echo",
        "grep",
        "head",
        "hostname",
        "id",
        "ls",
    ),
    *(
        "kill",
        "mkdir",
        "mv",
        "nproc",
        "pgrep",
        "pkill",
        "printf",
        "ps",
        "pwd",
        "rm",
        "sed",
        "seq",
        "sleep",
        "sort",
        "tail",
    ),
    *(
        "tee",
        "time",
        "timeout",
        "top",
        "touch",
        "tr",
        "true",
        "false",
        "uname",
        "uniq",
        "uptime",
        "watch",
        "wc",
        "which",
    ),
    *("ping", "tracepath", "traceroute", "mtr", "ss", "nstat", "sysctl", "tcpdump", "nc", "socat", "curl", "wget"),
    *("iperf", "iperf3", "irtt", "netperf", "netserver", "fping", "hping3", "owping", "twping"),
    "bufferscope-live",
)
"""Programs that people use in a shell on a host of a network."""

TERMINALS = ("xterm", "xterm-256color", "linux", "screen", "screen-256color", "tmux", "tmux-256color", "vt100", "dumb")
_TERMINFO = ("/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo")


class NotBorrowed(GuestError):
    """A program that the guest can't borrow; `status` is the exit status that shells use in that case."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


SBIN = "/usr/sbin:/sbin:/usr/local/sbin"
"""Where distributions put root's programs, such as `BORROWED`; ordinary users often lack these directories in PATH."""
_TC_TABLES = ("/usr/lib/x86_64-linux-gnu/tc", "/usr/lib64/tc", "/usr/lib/tc", "/usr/share/tc")
_LIBRARY = re.compile(r"(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)")


def add_programs(root: Initramfs) -> None:
    """Add every program of `BORROWED` as `/usr/sbin/NAME`, and its libraries where its loader looks for them."""
    paths = {name: find(name) for name in BORROWED}
    if missing := [name for name, path in paths.items() if path is None]:
        packages = " ".join(programs.packages(missing))
        raise GuestError(f"{', '.join(missing)} not found, and the guest needs them: apt-get install {packages}")
    for name, path in paths.items():
        assert path is not None
        _add(root, f"/usr/sbin/{name}", path)
    for table in distributions():
        root.file(str(table), table.read_bytes())


def distributions() -> list[Path]:
    """The tables of delays that tc reads for netem's `distribution`, wherever distributions put those of their tc."""
    return sorted(table for directory in _TC_TABLES for table in Path(directory).glob("*.dist"))


def add_tools(root: Initramfs, more: str | None = None) -> None:
    """Add the `TOOLS` that this machine has to `/usr/bin`, and one `more` program, given by name or path.

    Raises `NotBorrowed` if that program is missing, or is a script: its interpreter would need more than libraries.
    """
    root.symlink("/bin", "usr/bin")
    for name in TOOLS:
        if (path := find(name)) and _is_binary(path):
            _add(root, f"/usr/bin/{name}", path)
    if more is not None and more not in TOOLS:
        _add(root, *_borrowed(more))
    for name in TERMINALS:
        entries = (Path(directory) / name[0] / name for directory in _TERMINFO)
        if entry := next((entry for entry in entries if entry.is_file()), None):
            root.file(f"/lib/terminfo/{name[0]}/{name}", entry.read_bytes())


def _borrowed(name: str) -> tuple[str, str]:
    """A program's path in the guest, and its path on this machine."""
    path = find(name)
    if path is None and not Path(name).exists():
        raise NotBorrowed(f"{name}: not found on this machine, from which the guest borrows its programs", 127)
    if path is None or not _is_binary(path):
        raise NotBorrowed(f"{name} cannot be borrowed (a script?): use --engine host", 126)
    return str(Path(path).absolute()) if "/" in name else f"/usr/bin/{name}", path


def _add(root: Initramfs, target: str, path: str) -> None:
    root.file(target, Path(path).read_bytes(), executable=True)
    for library in shared_libraries(path):
        root.file(library, Path(library).read_bytes(), executable=True)


def _is_binary(path: str) -> bool:
    with Path(path).open("rb") as file:
        return file.read(4) == b"\x7fELF"


def find(name: str) -> str | None:
    """The path of a program: in PATH, where distributions put root's programs, or in this package."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{SBIN}:{PACKAGE / 'bin'}")


def shared_libraries(program: str) -> list[str]:
    """Absolute paths of the libraries, loader included, that `program` needs on this machine."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    if "not a dynamic executable" in done.stderr + done.stdout:
        return []
    if done.returncode != 0 or "not found" in done.stdout:
        raise GuestError(f"ldd {program}: {(done.stderr or done.stdout).strip()}")
    return sorted({match[1] for match in map(_LIBRARY.search, done.stdout.splitlines()) if match})
