"""Where packets were lost: in a queue that was full or has an AQM, or on a wire.

Only data counts. TCP does not retransmit a lost acknowledgement or slow down for it, and an acknowledgement that cake's
filter removed was not needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from bufferscope._core import DROP_REASONS
from bufferscope.analysis.explanation.senders import Sender
from bufferscope.engines import engine_of
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.window import Window

ON_A_WIRE = ("loss", "retries")
"""Reasons that have nothing to do with a queue: the wire, a netem that emulates one, or the air."""
NEEDLESS = ("ack_filter",)
"""Reasons that lose nothing: a later acknowledgement says as much."""
_MARKS = [reason for reason, marks in DROP_REASONS.items() if marks]


@dataclass(frozen=True)
class Losses:
    """The packets of data that one flow lost in a window."""

    on_wire: int
    """Outside of any queue."""
    in_queue: int
    is_derived: bool
    """Whether losses outside of queues are the flow's retransmissions minus the drops of queues, as on a kernel."""
    port: str | None
    """The port that lost the most outside of a queue; None if it is not known."""
    queue_port: str | None
    """The port whose queue dropped the most."""


def losses(run: RunRecords, window: Window, flows: Sequence[Sender]) -> dict[str, Losses]:
    """The losses of each of these flows, by flow."""
    counts = lost_packets(run, window)
    sees_all = sees_flows(run)
    return {each.flow: (_seen if sees_all else _derived)(counts, each, flows) for each in flows}


def sees_flows(run: RunRecords) -> bool:
    """Whether the table `drops` has each lost packet with its flow."""
    return engine_of(run.engine).sees_every_drop


def lost_packets(run: RunRecords, window: Window) -> pl.DataFrame:
    """The number `len` of packets lost in a window by `flow`, `port` and `on_wire` (outside of any queue)."""
    rows = window.rows(run.drops.select("t_ns", "port", "layer", "flow", "reason"))
    rows = rows.filter(~pl.col("reason").is_in([*_MARKS, *NEEDLESS])).with_columns(
        on_wire=pl.col("reason").is_in(ON_A_WIRE) | (pl.col("layer") == "wire")
    )
    return rows.group_by("flow", "port", "on_wire").len()


def _seen(counts: pl.DataFrame, sender: Sender, _: Sequence[Sender]) -> Losses:
    way = [port.name for port in sender.way.out]
    own = counts.filter((pl.col("flow") == sender.flow) & pl.col("port").is_in(way))
    on_wire, in_queue = own.filter(pl.col("on_wire")), own.filter(~pl.col("on_wire"))
    return Losses(int(on_wire["len"].sum()), int(in_queue["len"].sum()), False, busiest(on_wire), busiest(in_queue))


def _derived(counts: pl.DataFrame, sender: Sender, flows: Sequence[Sender]) -> Losses:
    """A kernel counts drops without their flow: the retransmissions of all flows, minus the drops of their queues."""
    way = {port.name for port in sender.way.out}
    dropped = counts.filter(~pl.col("on_wire") & pl.col("port").is_in(list(way)))
    in_queue = int(dropped["len"].sum())
    alike = [each for each in flows if each.is_tcp and way & {port.name for port in each.way.out}]
    repaired = sum(each.retransmits for each in alike)
    if not repaired:
        return Losses(0, 0, True, None, busiest(dropped))
    part = sender.retransmits / repaired
    outside = max(0, repaired - in_queue)
    return Losses(round(outside * part), round(min(in_queue, repaired) * part), True, None, busiest(dropped))


def busiest(rows: pl.DataFrame) -> str | None:
    """The port with the most of these losses; None if there are none."""
    if rows.is_empty():
        return None
    ports = rows.group_by("port").agg(pl.col("len").sum()).sort("len", "port", descending=[True, False])
    return str(ports["port"][0])
