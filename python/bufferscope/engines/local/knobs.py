"""Single settings of this machine that `fix` changes beside disciplines: kernel settings, rings, byte queue limits.

Each is recognised in the command that is printed for it. Its value is read before, and written back in the same form.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict

from bufferscope.base.errors import EngineError
from bufferscope.engines.local.trees import command

KERNEL = ("net.ipv4.tcp_notsent_lowat", "net.ipv4.tcp_congestion_control")
"""The only kernel settings that are changed."""
PROC, SYS = Path("/proc/sys"), Path("/sys/class/net")
_SYSCTL = re.compile(r"sysctl -w (net\.ipv4\.[a-z_]+)=([a-z0-9_]{1,15})")
_RING = re.compile(r"ethtool -G (\S+) tx (\d{1,6})")
_LIMIT = re.compile(r"echo (\d{1,10}) \| tee /sys/class/net/([^/\s]+)/queues/tx-\*/byte_queue_limits/limit_max")
_DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}")
_QUEUE = re.compile(r"tx-\d{1,4}")
_VALUE = re.compile(r"[a-z0-9_]{1,20}")
_TX = re.compile(r"^TX:\s+(\d+)\s*$", re.MULTILINE)
CURRENT = "Current hardware settings"
RING = "ring"
LIMIT = "limit_max"


class SavedKnob(TypedDict):
    """A setting before and after a change."""

    name: str
    """`net.ipv4.*`; `ring eth0`: the descriptors for sending; `limit_max eth0 tx-0`: a byte queue limit."""
    before: str
    after: str


def is_knob(line: str) -> bool:
    """Whether a command changes a single setting that can be restored."""
    found = _SYSCTL.fullmatch(line)
    return found[1] in KERNEL if found else bool(_RING.fullmatch(line) or _LIMIT.fullmatch(line))


def take(lines: Sequence[str]) -> list[SavedKnob]:
    """The settings that these commands change, with their values of now. Raises `EngineError`."""
    return [
        {"name": name, "before": _read(name), "after": after}
        for line in lines
        if is_knob(line)
        for name, after in _changes(line)
    ]


def put(knob: SavedKnob, *, undo: bool = False) -> None:
    """Write the value after the change, or before it. Raises `EngineError`."""
    value = knob["before"] if undo else knob["after"]
    _check(knob["name"], value)
    kind, _, rest = knob["name"].partition(" ")
    if kind == RING:
        if _read(knob["name"]) != value:  # ethtool fails if nothing changes
            command("ethtool", "-G", rest, "tx", value)
        return
    file = _file(knob["name"])
    try:
        file.write_text(value + "\n", encoding="ascii")
    except OSError as error:
        raise EngineError(f"{file}: {error.strerror}") from None


def settled(knobs: Sequence[SavedKnob]) -> list[SavedKnob]:
    """The same after the change, with the values that are there: a driver may round a ring up."""
    return [{**each, "after": _read(each["name"])} for each in knobs]


def others(knobs: Sequence[SavedKnob]) -> list[str]:
    """The names of settings that something else has changed since."""
    return [each["name"] for each in knobs if _read(each["name"]) not in (each["before"], each["after"])]


def is_before(knobs: Sequence[SavedKnob]) -> bool:
    """Whether every setting has its value of before."""
    return all(_read(each["name"]) == each["before"] for each in knobs)


def restoring(knobs: Sequence[SavedKnob]) -> Iterator[str]:
    """The commands that set the values of before, in the form in which `take` reads commands."""
    limits: dict[str, str] = {}
    for each in knobs:
        kind, *rest = each["name"].split(" ")
        if kind == RING:
            yield f"ethtool -G {rest[0]} tx {each['before']}"
        elif kind == LIMIT:
            limits.setdefault(rest[0], each["before"])
        else:
            yield f"sysctl -w {kind}={each['before']}"
    for device, limit in limits.items():
        yield f"echo {limit} | tee /sys/class/net/{device}/queues/tx-*/byte_queue_limits/limit_max"


def _changes(line: str) -> Iterator[tuple[str, str]]:
    """The settings that a command changes, and their new values."""
    if found := _SYSCTL.fullmatch(line):
        yield found[1], found[2]
    elif found := _RING.fullmatch(line):
        yield f"{RING} {found[1]}", found[2]
    elif found := _LIMIT.fullmatch(line):
        queues = sorted((SYS / found[2] / "queues").glob("tx-*"))
        if not queues:
            raise EngineError(f"{found[2]} has no byte queue limits")
        for queue in queues:
            yield f"{LIMIT} {found[2]} {queue.name}", found[1]


def _check(name: str, value: str) -> None:
    """Raise `EngineError` unless this is a setting, and a value, as this module writes them."""
    kind, *rest = name.split(" ")
    shapes = {RING: [_DEVICE], LIMIT: [_DEVICE, _QUEUE]}.get(kind)
    is_known = name in KERNEL if shapes is None else len(rest) == len(shapes)
    if shapes is not None and is_known:
        is_known = all(shape.fullmatch(word) for shape, word in zip(shapes, rest, strict=True))
    if not is_known or not _VALUE.fullmatch(value):
        raise EngineError(f"the saved settings are malformed: found {name!r:.60}, {value!r:.40}")


def _file(name: str) -> Path:
    if name in KERNEL:
        return PROC.joinpath(*name.split("."))
    _, device, queue = name.split(" ")
    return SYS / device / "queues" / queue / "byte_queue_limits" / LIMIT


def _read(name: str) -> str:
    """The present value. Raises `EngineError` if it is not known."""
    _check(name, "0")
    if name.startswith(f"{RING} "):
        device = name.partition(" ")[2]
        _, _, current = command("ethtool", "-g", device).partition(CURRENT)
        found = _TX.search(current)
        if found is None:
            raise EngineError(f"ethtool -g {device}: found no length of the ring for sending")
        return found[1]
    file = _file(name)
    try:
        value = file.read_text(encoding="ascii", errors="replace").strip()
    except OSError as error:
        raise EngineError(f"{file}: {error.strerror}") from None
    _check(name, value)
    return value
