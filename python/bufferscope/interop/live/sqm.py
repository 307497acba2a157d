"""Making a change permanent on OpenWrt: the shapers that were kept become the settings of sqm-scripts, by `uci`.

The settings before are stored as `uci export` prints them, and given back by `uci import`.
"""

import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from bufferscope.analysis.fixing import tc
from bufferscope.analysis.fixing.framing import ETHERNET_HEADER, FRAMINGS, UNKNOWN, Framing
from bufferscope.analysis.fixing.targets.openwrt import commands
from bufferscope.base.errors import EngineError
from bufferscope.engines.local.saved import SavedState
from bufferscope.engines.local.trees import command
from bufferscope.store.verdict import Direction

PACKAGE = "sqm"
SERVICE = Path("/etc/init.d/sqm")
BEFORE = Path("/etc/bufferscope-fix.sqm")
"""The settings before; a place that survives a restart."""
_SHAPER = re.compile(r"tc qdisc replace dev (\S+) root (?:handle \S+ )?(?:cake bandwidth|tbf rate) (\d+)kbit")
_OVERHEAD = re.compile(r" overhead (\d+)")


def is_here() -> bool:
    """Whether this machine is configured with `uci`."""
    return shutil.which("uci") is not None


def write(state: SavedState, before: Path = BEFORE) -> list[str]:
    """Make a kept change permanent, and return the commands that were run.

    Raises `EngineError` if it is not a shaper, or sqm-scripts is not installed; nothing is committed then.
    """
    rates, qdisc, shape = _shapers(state)
    try:
        present = command("uci", "export", PACKAGE)
    except EngineError:
        raise EngineError(
            "sqm-scripts is not installed, which makes shapers permanent here: opkg update && opkg install sqm-scripts"
        ) from None
    lines = list(commands(state["interface"], rates, qdisc, shape))
    if not _has_queue():
        lines.insert(0, f"uci add {PACKAGE} queue")
    if not before.exists():
        try:
            before.write_text(present, encoding="utf-8")
        except OSError as error:
            raise EngineError(f"{before}: {error.strerror}") from None
    try:
        for line in lines:
            command(*shlex.split(line))
        command("uci", "commit", PACKAGE)
    except EngineError:
        with suppress(EngineError):
            remove(before)
        raise
    return [*lines, f"uci commit {PACKAGE}", *_restarted()]


def remove(before: Path = BEFORE) -> bool:
    """Restore the settings before, and return whether there were any. Raises `EngineError`."""
    if not before.exists():
        return False
    command("uci", "-f", str(before), "import", PACKAGE)
    command("uci", "commit", PACKAGE)
    _restarted()
    before.unlink()
    return True


def _restarted() -> list[str]:
    """Let sqm-scripts take over at the next start and now."""
    if not SERVICE.exists():
        return []
    for word in ("enable", "restart"):
        command(str(SERVICE), word)
    return [f"{SERVICE} enable", f"{SERVICE} restart"]


def _has_queue() -> bool:
    with suppress(EngineError):
        return bool(command("uci", "-q", "get", f"{PACKAGE}.@queue[0]"))
    return False


def _shapers(state: SavedState) -> tuple[dict[Direction, int], str, Framing]:
    """The rates in kbit/s of the shapers of a change, their discipline, and the headers that they count."""
    found = list(_found(state))
    if not found:
        raise EngineError("only a shaper can be made permanent with uci; this change has none")
    rates: dict[Direction, int] = {way: kbit for way, kbit, _ in found}
    line = found[0][2]
    if "cake" not in line:
        overhead = _OVERHEAD.search(line)
        counted = ETHERNET_HEADER + int(overhead[1]) if overhead else ETHERNET_HEADER
        return rates, tc.FQ_CODEL, Framing("", "", "", counted, atm="linklayer atm" in line)
    known = [each for each in FRAMINGS.values() if f"kbit {each.cake}" in line]
    return rates, tc.CAKE, max(known, key=lambda each: len(each.cake), default=FRAMINGS[UNKNOWN])


def _found(state: SavedState) -> Iterator[tuple[Direction, int, str]]:
    for line in state["commands"]:
        shaper = _SHAPER.match(line)
        if shaper:
            yield "down" if shaper[1] == state["block"] else "up", int(shaper[2]), line
