"""What matters for this machine's queues: the interface on the way to an address, its disciplines, its kernel."""

import json
import os
import re
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bufferscope.base.errors import EngineError, InputError
from bufferscope.engines.host import engine as host
from bufferscope.engines.local import rtnetlink
from bufferscope.engines.local.rtnetlink import TcObject
from bufferscope.engines.local.trees import command

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}")
"""A name of an interface that needs no quoting in any shell."""
NET_ADMIN = 12
"""CAP_NET_ADMIN of linux/capability.h."""
_CONGESTION = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


@dataclass(frozen=True)
class MachineFacts:
    """What is known of this machine."""

    interface: str
    ifindex: int
    qdiscs: tuple[TcObject, ...]
    has: frozenset[str]
    """The disciplines that its kernel has."""
    has_ifb: bool
    congestion: tuple[str, ...]
    """The congestion controls that a program may choose."""


def facts(address: str | None, interface: str | None) -> MachineFacts:
    """What is known of this machine, by the way to an address or by an interface.

    Raises `EngineError` or `InputError`.
    """
    name = checked(interface) if interface else towards(address or "")
    index = index_of(name)
    return MachineFacts(
        name, index, tuple(rtnetlink.qdiscs(index)), disciplines(), _has_ifb(), tuple(_text(_CONGESTION).split())
    )


def checked(interface: str) -> str:
    """The name of an interface. Raises `InputError` if it would need quoting."""
    if not NAME.fullmatch(interface):
        raise InputError(f"--interface: found {interface!r:.60}; allowed: the name of an interface, as in eth0")
    return interface


def index_of(interface: str) -> int:
    """The number of an interface. Raises `InputError` for an unknown name."""
    try:
        return socket.if_nametoindex(interface)
    except OSError:
        names = ", ".join(name for _, name in socket.if_nameindex())
        raise InputError(f"--interface: found {interface!r}; this machine has {names}") from None


def towards(address: str) -> str:
    """The interface on the way to an address with a port. Raises `EngineError` if there is no way."""
    host_part = address.rpartition(":")[0].strip("[]").partition("%")[0]
    try:
        socket.getaddrinfo(host_part, None, flags=socket.AI_NUMERICHOST)
        found = json.loads(command("ip", "-json", "route", "get", host_part))
        name = found[0]["dev"]
    except (OSError, ValueError, LookupError, TypeError):
        raise EngineError(f"no interface of this machine leads to {address!r:.80}; name it with --interface") from None
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise EngineError(f"the interface {name!r:.40} cannot be set; name another with --interface")
    return name


def disciplines() -> frozenset[str]:
    """The queueing disciplines of this kernel, as `doctor` finds them; none if they cannot be asked for."""
    try:
        return frozenset(name for name, has in host.capabilities()["qdiscs"].items() if has)
    except EngineError:
        return frozenset()


def may_change() -> bool:
    """Whether this process may change the network's settings (CAP_NET_ADMIN)."""
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", _text(Path("/proc/self/status")), re.MULTILINE)
    return bool(found and int(found[1], 16) >> NET_ADMIN & 1)


def _has_ifb() -> bool:
    """Whether the kernel has intermediate functional blocks: one is made in a network namespace that ends at once."""
    own = ["--map-root-user"] if os.geteuid() else []
    words = ["unshare", *own, "--net", "ip", "link", "add", "name", "probe", "type", "ifb"]
    try:
        return subprocess.run(words, capture_output=True, check=False, timeout=10).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
