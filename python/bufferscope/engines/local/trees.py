"""The queueing disciplines of an interface as a tree: taken down, recognised, and built again."""

import base64
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import TypedDict

from bufferscope.base.errors import EngineError
from bufferscope.engines.local import rtnetlink
from bufferscope.engines.local.rtnetlink import ROOT, TcObject
from bufferscope.store.typed import Count

RESTORED = ("pfifo", "bfifo", "pfifo_fast", "tbf", "htb", "codel", "fq_codel", "fq", "cake", "pie")
"""What the kernel takes back as it reports it (`net/sched/sch_*.c`: `dump` and `init` have the same attributes)."""
_HTB_INIT, _HTB_VERSION = 2, 3
"""TCA_HTB_INIT. The kernel reports version 0x30011 and takes 3, its upper half."""
_CAKE_OVERHEAD, _CAKE_RAW = 6, 12
"""TCA_CAKE_OVERHEAD and TCA_CAKE_RAW; both are reported if no overhead was set."""
_COUNTERS = re.compile(r" direct_packets_stat \d+")
"""Counters in the output of `tc qdisc show`, which say nothing of the settings."""
_PATIENCE_S = 10
_MAJOR = 0xFFFF0000


class SavedObject(TypedDict):
    """A discipline or a class, as it is stored."""

    handle: Count
    parent: Count
    kind: str
    options: str
    """Base64."""


class Tree(TypedDict):
    """The disciplines of an interface."""

    qdiscs: list[SavedObject]
    """Without those that the kernel makes by itself."""
    classes: list[SavedObject]
    shown: list[str]
    """The lines of `tc qdisc show`, without counters."""


class NotRestorableError(EngineError):
    """A tree that could not be built again exactly; the text says why."""


def shown(interface: str) -> list[str]:
    """The lines of `tc qdisc show` for an interface, without counters. Raises `EngineError`."""
    return [_COUNTERS.sub("", line.rstrip()) for line in tc("qdisc", "show", "dev", interface).splitlines()]


def tc(*arguments: str) -> str:
    """Run `tc`, and return what it prints. Raises `EngineError`."""
    return command("tc", *arguments)


def command(*words: str) -> str:
    """Run a command, and return what it prints. Raises `EngineError`."""
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_PATIENCE_S,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineError(f"{' '.join(words)}: {error}") from None
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise EngineError(f"{' '.join(words)}: {said[0] if said else f'exit status {done.returncode}'}")
    return done.stdout


def take(interface: str, ifindex: int) -> Tree:
    """The tree of an interface, so that it can be built again. Raises `NotRestorableError` if it cannot."""
    qdiscs, classes = rtnetlink.qdiscs(ifindex), rtnetlink.classes(ifindex)
    own = [each for each in qdiscs if each.handle & _MAJOR and each.parent != rtnetlink.INGRESS]
    ingress = [each for each in qdiscs if each.parent == rtnetlink.INGRESS]
    if ingress:
        raise NotRestorableError(
            f"{interface} has a discipline for what arrives ({ingress[0].kind}), which is not restored"
        )
    root = next((each for each in qdiscs if each.parent == ROOT), None)
    if root is None or not root.handle & _MAJOR:
        return {"qdiscs": [], "classes": [], "shown": shown(interface)}  # the kernel's default, which returns by itself
    for each in own:
        if each.kind not in RESTORED:
            raise NotRestorableError(f"{interface} has the discipline {each.kind}, which cannot be restored exactly")
        if rtnetlink.filters(ifindex, each.handle):
            raise NotRestorableError(f"{interface} has filters, which cannot be restored exactly")
    kept = [each for each in classes if each.kind == "htb"]
    return {
        "qdiscs": [_saved(each) for each in own],
        "classes": [_saved(each) for each in kept],
        "shown": shown(interface),
    }


def rebuild(ifindex: int, tree: Tree) -> None:
    """Build a tree in place of what is there. Raises `EngineError`."""
    qdiscs = [_loaded(each) for each in tree["qdiscs"]]
    classes = [_loaded(each) for each in tree["classes"]]
    root = next((each for each in rtnetlink.qdiscs(ifindex) if each.parent == ROOT), None)
    if root is not None and root.handle & _MAJOR:
        rtnetlink.delete_qdisc(ifindex)
    for create, item in _in_order(qdiscs, classes):
        if create == "qdisc":
            rtnetlink.create_qdisc(ifindex, item)
        else:
            rtnetlink.create_class(ifindex, item)


def _in_order(qdiscs: list[TcObject], classes: list[TcObject]) -> Iterator[tuple[str, TcObject]]:
    """Parents before children: a discipline, its classes from the top, and the disciplines below them."""
    pending = [*(("qdisc", each) for each in qdiscs), *(("class", each) for each in classes)]
    there = {ROOT}
    while pending:
        ready = [each for each in pending if _is_ready(*each, there)]
        if not ready:
            raise EngineError("the saved queueing disciplines have no root")
        for kind, item in ready:
            yield kind, item
            there.add(item.handle)
            if kind == "qdisc" and item.kind == "tbf":
                there.add(item.handle | 1)  # its only class, which it makes by itself
        pending = [each for each in pending if each not in ready]


def _is_ready(kind: str, item: TcObject, there: set[int]) -> bool:
    if kind == "class" and item.parent == ROOT:
        return item.handle & _MAJOR in there
    return item.parent in there


def _saved(item: TcObject) -> SavedObject:
    options = _accepted(item)
    return {
        "handle": item.handle,
        "parent": item.parent,
        "kind": item.kind,
        "options": base64.b64encode(options).decode(),
    }


def _loaded(item: SavedObject) -> TcObject:
    try:
        options = base64.b64decode(item["options"], validate=True)
    except ValueError:
        raise EngineError("the saved queueing disciplines are not in Base64") from None
    if item["kind"] not in RESTORED or len(options) > 1 << 15 or max(item["handle"], item["parent"]) > ROOT:
        raise EngineError(f"the saved queueing disciplines are malformed: found {item['kind']!r:.40}")
    return TcObject(item["handle"], item["parent"], item["kind"], options)


def _accepted(item: TcObject) -> bytes:
    """The options as the kernel takes them."""
    if item.kind == "htb" and not item.handle & 0xFFFF:
        return b"".join(
            rtnetlink.attribute(
                kind, _HTB_VERSION.to_bytes(4, sys.byteorder) + content[4:] if kind == _HTB_INIT else content
            )
            for kind, content in rtnetlink.attributes(item.options)
        )
    if item.kind == "cake":
        found = dict(rtnetlink.attributes(item.options))
        if _CAKE_RAW in found:
            found.pop(_CAKE_OVERHEAD, None)  # an overhead, also of 0, would take the place of `raw`
        return b"".join(rtnetlink.attribute(kind, content) for kind, content in found.items())
    return item.options
