"""Statements about flows that share a flow queue, so that flow queueing does not keep them apart."""

from collections.abc import Iterator

from bufferscope.analysis.explanation.evidence import Evidence
from bufferscope.analysis.explanation.statement import Number, Statement
from bufferscope.metrics.sharing import Sharing, sharing

MOST_TOLD = 3
"""The most pairs with a sentence of their own."""
DERIVED = (
    "The kernel does not say whose packets a flow queue holds. A single one holds packets, and {flow} waits longer "
    "than its own packets and the other ports explain."
)


def sharing_statements(found: Evidence) -> Iterator[Statement]:
    """Which flows share a queue that a discipline with flow queueing would give each of them."""
    pairs = sharing(found.run)
    yield from (_told(each) for each in pairs[:MOST_TOLD])
    if len(pairs) > MOST_TOLD:
        more = len(pairs) - MOST_TOLD
        yield Statement("who", f"Further pairs of flows that share a flow queue: {more}.", {"pairs": len(pairs)})


def _told(pair: Sharing) -> Statement:
    numbers: dict[str, Number] = {"flow": pair.flow, "other": pair.other, "port": pair.port, "share": pair.share}
    if pair.queues is not None:
        numbers["queues"] = pair.queues
    unknown = DERIVED.format(flow=pair.flow) if pair.is_derived else None
    return Statement("who", f"{pair.sentence}.", numbers, "goodput", unknown)
