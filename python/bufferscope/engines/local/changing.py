"""Changes of this machine's queues that can be undone: apply, change again, keep, undo."""

import re
import shlex
import socket
from collections.abc import Sequence
from pathlib import Path

from bufferscope.base.errors import EngineError, InputError
from bufferscope.engines.local import knobs, rtnetlink, saved, trees
from bufferscope.engines.local.facts import NAME, index_of, may_change
from bufferscope.engines.local.saved import SavedState, Status
from bufferscope.engines.local.trees import command

UNDONE = "Undone: {} has the settings that it had before the change."
_TARGET = re.compile(r"tc qdisc replace dev \S+ (?:root|parent \S+)(?= )")
_BLOCK = re.compile(r"ip link add name (\S+) type ifb")


def prepare(interface: str, commands: Sequence[str]) -> SavedState:
    """Save the present settings before commands change them; nothing is changed yet.

    Raises `EngineError` if they could not be restored, and `InputError` if an earlier change is still in place.
    """
    if not may_change():
        raise EngineError("changing queues needs root, or CAP_NET_ADMIN: run it with sudo")
    index, file = index_of(interface), saved.path()
    blocks = [found[1] for line in commands if (found := _BLOCK.fullmatch(line))]
    with saved.locked(file):
        if saved.read(file):
            raise InputError("an earlier change is still in place; undo it first: bufferscope fix --undo")
        for name in blocks:
            if name in {each for _, each in socket.if_nameindex()}:
                raise EngineError(f"{name} is there already: something else shapes what arrives on {interface}")
        state: SavedState = {
            "version": saved.VERSION,
            "boot": saved.boot_id(),
            "interface": interface,
            "ifindex": index,
            "status": "changing",
            "before": _before(interface, index, commands),
            "after": [],
            "commands": list(commands),
            "block": next(iter(blocks), None),
        }
        if saved_knobs := knobs.take(commands):
            state["knobs"] = saved_knobs
        saved.write(file, state)
    return state


def apply(state: SavedState) -> None:
    """Run the commands. Raises `EngineError` if one fails; the settings before are then restored."""
    file = saved.path()
    try:
        _run(state, state["commands"])
        set_status(state, "applied")
    except BaseException:
        undo(file, force=True)
        raise


def apply_more(state: SavedState, commands: Sequence[str]) -> None:
    """Replace disciplines of a change that is in place, as by another rate; each by one with the same target.

    Raises `EngineError` if a command fails; the change is then as it was, or undone by its guard.
    """
    _run(state, commands)
    by_target = {_target(line): line for line in commands}
    state["commands"] = [by_target.get(_target(line), line) for line in state["commands"]]
    set_status(state, state["status"])


def _run(state: SavedState, commands: Sequence[str]) -> None:
    """Run commands, and note what is there then."""
    for each in state.get("knobs", ()):
        knobs.put(each)
    for line in commands:
        if not knobs.is_knob(line):
            command(*shlex.split(line))
    if "knobs" in state:
        state["knobs"] = knobs.settled(state["knobs"])
    state["after"] = trees.shown(state["interface"])


def _target(line: str) -> str:
    """What a command of `tc` sets: what is before the kind of the discipline, as `tc qdisc replace dev eth0 root`."""
    found = _TARGET.match(line)
    return found[0] if found else line


def _before(interface: str, index: int, commands: Sequence[str]) -> trees.Tree:
    """The disciplines before; they need not be restorable if only single settings change."""
    if all(map(knobs.is_knob, commands)):
        return {"qdiscs": [], "classes": [], "shown": trees.shown(interface)}
    return trees.take(interface, index)


def set_status(state: SavedState, status: Status) -> None:
    """Store how far the change is. Raises `EngineError` if it was undone meanwhile."""
    file = saved.path()
    with saved.locked(file):
        if saved.read(file) is None:
            raise EngineError("the change was undone meanwhile")
        state["status"] = status
        saved.write(file, state)


def undo(file: Path | None = None, *, force: bool = False) -> str:
    """Restore the settings before a change, and say in a sentence what was done.

    Settings that something else has changed since are restored only with `force`. Raises `EngineError` if they cannot
    be restored, and `InputError` if they are not.
    """
    file = file or saved.path()
    with saved.locked(file):
        state = saved.read(file)
        if state is None:
            return "Nothing to undo: no change of bufferscope is in place."
        text = _undo(state, force=force)
        file.unlink()
        return text


def _undo(state: SavedState, *, force: bool) -> str:
    interface, block = state["interface"], state["block"]
    if not NAME.fullmatch(interface) or (block is not None and not NAME.fullmatch(block)):
        raise EngineError("the saved settings name no interface")
    if state["boot"] != saved.boot_id():
        return f"Nothing to undo: the machine was restarted since, and {interface} has its settings of the start."
    try:
        index = socket.if_nametoindex(interface)
    except OSError:
        index = 0
    own = state.get("knobs", [])
    if index != state["ifindex"]:
        for each in own:
            if each["name"] in knobs.KERNEL:
                knobs.put(each, undo=True)  # those are not the interface's
        return f"Nothing to undo: {interface} is not the interface that was changed; its settings are gone with it."
    now = trees.shown(interface)
    is_same = now == state["before"]["shown"] and not _block_is_there(block)
    if is_same and knobs.is_before(own):
        return f"Nothing to undo: {interface} has the settings that it had before the change."
    if now != state["after"] and state["status"] != "changing" and not force:
        raise InputError(
            f"nothing was undone: something else has changed {interface} since, which now has "
            f"{now[0] if now else 'nothing'}. "
            "To restore the settings before the change all the same: bufferscope fix --undo --yes"
        )
    if (others := knobs.others(own)) and state["status"] != "changing" and not force:
        raise InputError(
            f"nothing was undone: something else has changed {', '.join(others)} since. To restore the settings before "
            "the change all the same: bufferscope fix --undo --yes"
        )
    for each in own:
        knobs.put(each, undo=True)
    if is_same:
        return UNDONE.format(interface)
    _restore(interface, index, block, state)
    found = trees.shown(interface)
    if found != state["before"]["shown"]:
        raise EngineError(
            f"{interface} was restored, but differs: now {'; '.join(found)}; before "
            f"{'; '.join(state['before']['shown'])}"
        )
    return UNDONE.format(interface)


def _restore(interface: str, index: int, block: str | None, state: SavedState) -> None:
    trees.rebuild(index, state["before"])
    if any(each.parent == rtnetlink.INGRESS for each in rtnetlink.qdiscs(index)):
        rtnetlink.delete_qdisc(index, rtnetlink.INGRESS)  # there was none before, or it would have been refused
    if _block_is_there(block):
        assert block
        command("ip", "link", "del", "dev", block)


def _block_is_there(block: str | None) -> bool:
    return block is not None and block in {name for _, name in socket.if_nameindex()}
