"""A systemd unit that makes a change again at each start of the machine (systemd.service(5))."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from bufferscope.base.errors import EngineError
from bufferscope.engines.local import knobs
from bufferscope.engines.local.saved import SavedState
from bufferscope.engines.local.trees import command

PLACE = Path("/etc/systemd/system")
NAME = "bufferscope-fix.service"
MARK = "# Written by bufferscope fix --persist; bufferscope fix --undo removes it."
RUNNING = Path("/run/systemd/system")
"""There if systemd is the first process (sd_booted(3))."""


def text(state: SavedState) -> str:
    """The unit. The commands are those that were run; each program by its full path, as systemd wants it."""
    interface = state["interface"]
    lines = [f"ExecStart={_full(line)}" for line in state["commands"]]
    stop = [f"ExecStop=-{_full(line)}" for line in knobs.restoring(state.get("knobs", ()))]
    if not all(map(knobs.is_knob, state["commands"])):
        stop.append(f"ExecStop=-{_full(f'tc qdisc del dev {interface} root')}")
    if block := state["block"]:
        stop += [
            f"ExecStop=-{_full(f'tc qdisc del dev {interface} ingress')}",
            f"ExecStop=-{_full(f'ip link del dev {block}')}",
        ]
    return "\n".join(
        [
            MARK,
            "[Unit]",
            f"Description=Short queue on {interface}",
            f"BindsTo=sys-subsystem-net-devices-{_escaped(interface)}.device",
            f"After=sys-subsystem-net-devices-{_escaped(interface)}.device network-pre.target",
            "",
            "[Service]",
            "Type=oneshot",
            "RemainAfterExit=yes",
            *lines,
            *stop,
            "",
            "[Install]",
            "WantedBy=multi-user.target",
            "",
        ]
    )


def write(state: SavedState, place: Path = PLACE) -> Path:
    """Write the unit, and enable it if systemd runs. Raises `EngineError`; nothing of another's is replaced."""
    file = place / NAME
    if file.exists() and not _is_ours(file):
        raise EngineError(f"{file} is there already, and not from bufferscope")
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text(state))
    except OSError as error:
        raise EngineError(f"{file}: {error.strerror}; is this a system with systemd?") from None
    if RUNNING.is_dir() and place == PLACE:
        command("systemctl", "daemon-reload")
        command("systemctl", "enable", NAME)
    return file


def remove(file: Path) -> bool:
    """Remove a unit of ours, and return whether there was one. A file that is not ours stays."""
    if file.name != NAME or not _is_ours(file):
        return False
    if RUNNING.is_dir() and file.parent == PLACE:
        with suppress(EngineError):
            command("systemctl", "disable", NAME)
    file.unlink()
    if RUNNING.is_dir() and file.parent == PLACE:
        with suppress(EngineError):
            command("systemctl", "daemon-reload")
    return True


def _is_ours(file: Path) -> bool:
    with suppress(OSError), file.open(encoding="utf-8", errors="replace") as stream:
        return stream.readline(len(MARK) + 1).rstrip("\n") == MARK
    return False


def _full(line: str) -> str:
    if "|" in line:
        return f"/bin/sh -c '{line}'"
    program, _, arguments = line.partition(" ")
    return f"{shutil.which(program) or f'/usr/sbin/{program}'} {arguments}"


def _escaped(name: str) -> str:
    r"""The name in that of a unit (systemd-escape(1)).

    >>> _escaped("eth0.7-a")
    'eth0.7\\x2da'
    """
    return name.replace("-", "\\x2d")
