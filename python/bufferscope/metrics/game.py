"""How many ticks of `game` traffic came too late, or never.

A tick is expected after the propagation delay of its path, whatever the load. It is late if it arrives more than the
entry's `late` after that. The time on the wires, which is short for such small packets, counts as delay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bufferscope.base.libraries import polars as pl
from bufferscope.metrics.declaring import Metric, query
from bufferscope.model.network import path

if TYPE_CHECKING:
    from bufferscope.metrics.batch import Batch
    from bufferscope.metrics.records import RunRecords


@query(
    Metric(
        "game.<traffic>.late_percent",
        "%",
        "Ticks that took longer than the propagation delay and the entry's late, or never came; the larger of both "
        "directions.",
        "probes: owd_up_ns; scenario: delay_ns, late_ns",
        lambda: pl.col("late_percent"),
        heading="<traffic> late (%)",
    ),
    Metric(
        "game.<traffic>.loss_percent",
        "%",
        "Ticks that never arrived; the larger of both directions.",
        "probes: owd_up_ns",
        lambda: pl.col("loss_percent"),
        heading="<traffic> loss (%)",
    ),
    reads={"probes": ("probe", "sent_ns", "owd_up_ns")},
)
def of_games(batch: Batch) -> pl.LazyFrame:
    """Every game that sent packets in the window; each number is that of the worse direction."""
    streams = batch.frame({"traffic": pl.String, "probe": pl.String, "most_ns": pl.Int64}, _streams)
    sent = batch.rows("probes", "probe", "owd_up_ns", time="sent_ns").join(streams, on=["run", "probe"])
    is_lost = pl.col("owd_up_ns").is_null()
    is_late = is_lost | (pl.col("owd_up_ns") > pl.col("most_ns"))
    ways = sent.group_by("run", "traffic", "probe").agg(
        late_percent=100 * is_late.mean(), loss_percent=100 * is_lost.mean()
    )
    worse = ways.group_by("run", "traffic").agg(pl.col("late_percent").max(), pl.col("loss_percent").max())
    return batch.traffic("game").join(worse, on=["run", "traffic"], maintain_order="left")


def _streams(run: RunRecords) -> list[tuple[object, ...]]:
    """The two streams of each game, and the longest delay of a tick that is not late."""
    nodes = [node["name"] for node in run.scenario["nodes"]]
    found: list[tuple[object, ...]] = []
    for entry in run.scenario["traffic"]:
        if entry["kind"] != "game":
            continue
        player, server = nodes[entry["from"]], nodes[entry["to"]]
        for number, ends in enumerate(((player, server), (server, player)), 1):
            propagation_ns = sum(port.delay_ns for port in path(run.scenario, *ends))
            found.append((entry["name"], f"{entry['name']}/{number}", propagation_ns + entry["late_ns"]))
    return found
