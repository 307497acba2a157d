"""The queues to try: tail drop of a few sizes, and every discipline with its defaults or fitted to the link."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bufferscope import _core
from bufferscope.model.disciplines import SHAPERS
from bufferscope.studies.choice.bottleneck import FRAME_BYTES, Bottleneck

Queue = Mapping[str, object]
"""A queue as an experiment file writes it."""

SIZES = (1 / 8, 1 / 4, 1 / 2, 1, 2, 4)
"""The sizes of tail drop, in bandwidth-delay products."""
FEWEST = 2
"""Packets in the smallest queue: one that is sent, one that waits."""


@dataclass(frozen=True)
class QueueCandidate:
    """A queue to try."""

    name: str
    queue: Queue
    is_size: bool = False
    """Whether it is one of the sizes of plain tail drop."""
    is_own: bool = False
    """Whether it is the queue of the experiment's file."""


def candidates(bottleneck: Bottleneck) -> tuple[list[QueueCandidate], list[str]]:
    """The queues to try at a port, and notes on disciplines that are left out."""
    found, notes = _sizes(bottleneck), []
    required = required_keys()
    for kind in _core.QDISCS:
        if kind in SHAPERS or kind == "pfifo":
            continue
        fitted = FITTED.get(kind)
        if fitted is None and len(required[kind]) > 1:
            needs = ", ".join(key for key in required[kind] if key != "qdisc")
            notes.append(f"{kind} is not tried: it has no default for {needs}")
            continue
        queue = fitted(bottleneck) if fitted else {}
        found.append(QueueCandidate(kind, {"qdisc": kind, **queue}))
    return found, notes


def required_keys() -> dict[str, list[str]]:
    """The keys that each discipline needs in an experiment file."""
    return {kind: variant["required"] for kind, variant in _variants().items()}


def _variants() -> dict[str, Any]:
    """The schema of each discipline's table."""
    variants = json.loads(_core.schema())["$defs"]["Queue"]["oneOf"]
    return {variant["properties"]["qdisc"]["const"]: variant for variant in variants}


def _sizes(bottleneck: Bottleneck) -> list[QueueCandidate]:
    held = bottleneck.held_bytes / FRAME_BYTES
    limits = sorted({max(FEWEST, _round(share * held)) for share in SIZES})
    return [
        QueueCandidate(f"pfifo {limit}", {"qdisc": "pfifo", "limit": f"{limit}p"}, is_size=True) for limit in limits
    ]


def _round(value: float) -> int:
    """A whole number with two significant digits."""
    return round(float(f"{value:.2g}"))


def _held_packets(bottleneck: Bottleneck) -> int:
    return max(FEWEST, _round(bottleneck.held_bytes / FRAME_BYTES))


def _bfifo(bottleneck: Bottleneck) -> Queue:
    return {"limit": f"{_held_packets(bottleneck) * FRAME_BYTES}b"}


def _head_drop(bottleneck: Bottleneck) -> Queue:
    return {"limit": f"{_held_packets(bottleneck)}p"}


def _red(bottleneck: Bottleneck) -> Queue:
    """Thresholds of 15 and 45 ms at the link's rate, at least 5 and 15 packets.

    `max` is three times `min`, and the probability a tenth (S. Floyd, notes on setting parameters, 1997).
    """
    least = max(5 * FRAME_BYTES, math.ceil(bottleneck.rate_bps * 0.015 / 8))
    thresholds = {"min": f"{least}b", "max": f"{3 * least}b", "limit": f"{12 * least}b"}
    return {**thresholds, "avpkt": "1500b", "probability": 0.1, "bandwidth": f"{bottleneck.rate_bps}bit"}


def _choke(bottleneck: Bottleneck) -> Queue:
    """The same thresholds in packets."""
    least = max(5, math.ceil(bottleneck.rate_bps * 0.015 / 8 / FRAME_BYTES))
    return {
        "min": f"{least}p",
        "max": f"{3 * least}p",
        "limit": f"{12 * least}p",
        "avpkt": "1500b",
        "probability": 0.1,
        "bandwidth": f"{bottleneck.rate_bps}bit",
    }


FITTED: Mapping[str, Callable[[Bottleneck], Queue]] = {
    "bfifo": _bfifo,
    "pfifo_head_drop": _head_drop,
    "red": _red,
    "choke": _choke,
}
"""Disciplines whose parameters must suit the link, with a way to find them."""
UNITS = {"_packets": "p", "_bytes": "b", "_ns": "ns", "_bps": "bit"}


def written(settings: Mapping[str, object]) -> Queue:
    """A resolved queue as an experiment file writes it: without what is not set, and with units after the numbers.

    >>> written({"qdisc": "codel", "limit_packets": 1000, "target_ns": 5_000_000, "ce_threshold_ns": None})
    {'qdisc': 'codel', 'limit': '1000p', 'target': '5000000ns'}
    """
    keys = _variants()[str(settings["qdisc"])]["properties"]
    found: dict[str, object] = {}
    for name, value in settings.items():
        suffix = next((suffix for suffix in UNITS if name.endswith(suffix)), "")
        key = name.removesuffix(suffix)
        if value is not None:
            is_number = keys.get(key, {}).get("type") in ("integer", "number")
            found[key] = f"{value}{UNITS[suffix]}" if suffix and not is_number else value
    return found
