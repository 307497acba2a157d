"""Where packets were lost: by a queue that was full or managed, or on a wire."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from bufferscope._core import DROP_REASONS
from bufferscope.explanation.senders import Sender
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.window import Window

ON_A_WIRE = ("loss", "retries")
"""Reasons that have nothing to do with a queue: the wire, a netem that emulates one, or the air."""
AMBIGUOUS = "loss_or_overlimit"
"""A kernel's netem counts both together."""
_MARKS = [reason for reason, marks in DROP_REASONS.items() if marks]


@dataclass(frozen=True)
class Losses:
    """The packets that one flow lost in a window."""

    on_wire: int
    """Outside of any queue."""
    in_queue: int
    is_derived: bool
    """Whether losses outside of queues are what the flow repaired and no queue dropped, as on a kernel."""
    port: str | None
    """The port that lost the most outside of a queue; None if it is not known."""
    queue_port: str | None
    """The port whose queue dropped the most."""


def losses(run: RunRecords, window: Window, flows: Sequence[Sender]) -> dict[str, Losses]:
    """The losses of each of these flows, by flow."""
    rows = window.rows(run.drops.select("t_ns", "port", "layer", "flow", "reason"))
    rows = rows.filter(~pl.col("reason").is_in(_MARKS)).with_columns(
        on_wire=pl.col("reason").is_in(ON_A_WIRE) | (pl.col("layer") == "wire")
    )
    sees_all = run.meta["engine"] == "sim"
    counts = rows.group_by("flow", "port", "on_wire").len()
    return {each.flow: (_seen if sees_all else _derived)(counts, each, flows) for each in flows}


def _seen(counts: pl.DataFrame, sender: Sender, _: Sequence[Sender]) -> Losses:
    own = counts.filter(pl.col("flow") == sender.flow)
    on_wire, in_queue = own.filter(pl.col("on_wire")), own.filter(~pl.col("on_wire"))
    return Losses(int(on_wire["len"].sum()), int(in_queue["len"].sum()), False, _most(on_wire), _most(in_queue))


def _derived(counts: pl.DataFrame, sender: Sender, flows: Sequence[Sender]) -> Losses:
    """A kernel counts drops without their flow: what all flows repaired, less what the queues on their way dropped."""
    way = {port.name for port in sender.way.out}
    dropped = counts.filter(~pl.col("on_wire") & pl.col("port").is_in(list(way)))
    in_queue = int(dropped["len"].sum())
    alike = [each for each in flows if each.is_tcp and way & {port.name for port in each.way.out}]
    repaired = sum(each.retransmits for each in alike)
    if not repaired:
        return Losses(0, 0, True, None, _most(dropped))
    part = sender.retransmits / repaired
    outside = max(0, repaired - in_queue)
    return Losses(round(outside * part), round(min(in_queue, repaired) * part), True, None, _most(dropped))


def _most(rows: pl.DataFrame) -> str | None:
    if rows.is_empty():
        return None
    ports = rows.group_by("port").agg(pl.col("len").sum()).sort("len", "port", descending=[True, False])
    return str(ports["port"][0])
