"""How fast flows react: how long a newcomer waits for its fair share, and how often a sender reduces its window.

The first is the δ-fair convergence time of D. Bansal, H. Balakrishnan, S. Floyd and S. Shenker, "Dynamic behavior of
slowly-responsive congestion control algorithms" (SIGCOMM 2001), with their δ = 0.1: two flows converge until the
smaller one has (1 - δ) / 2 of the bandwidth. Here there may be several flows. Goodput is averaged over the latter half
of the time since the newcomer's start, so that no fixed period is longer than short times or shorter than long ones.
"""

from __future__ import annotations

import math

from bufferscope.base.libraries import polars as pl
from bufferscope.metrics.batch import Batch
from bufferscope.metrics.declaring import Metric, query
from bufferscope.metrics.records import RunRecords
from bufferscope.model.network import NANOSECONDS, traffic_named, traffic_of_flow

TENTHS = 9
"""How many tenths of its fair share the newcomer must have: 1 - δ."""
REDUCING = ("cwr", "recovery", "loss")
"""The states in which a sender reduces its window, or has done so and repairs the loss."""
STEP_NS = 100_000_000
"""The times at which shares are compared are multiples of this after the newcomer's start."""


@query(
    Metric(
        "fair_after.<traffic>_s",
        "s",
        "Time from the start of a tcp entry that begins while others send until it has had, over the latter half of "
        "that time, 90 % of its fair share of all their goodput; censored if it never has.",
        "flows: delivered_bytes",
        lambda: ((pl.col("steps") * STEP_NS).cast(pl.Float64).fill_null(math.inf), NANOSECONDS),
    ),
    reads={"flows": ("t_ns", "flow", "delivered_bytes")},
)
def of_newcomers(batch: Batch) -> pl.LazyFrame:
    """For each newcomer, the first step at which its share of the latter half of its time is fair."""
    columns = {"traffic": pl.String, "start_ns": pl.Int64, "own": pl.Int64, "all": pl.Int64}
    newcomers = batch.frame(columns, _newcomers)
    entry = ["run", "traffic"]
    own, total, step = pl.col("own_bytes"), pl.col("all_bytes"), pl.col("step")
    is_own = pl.col("traffic") == pl.col("sender")
    gained = _gained(batch).rename({"traffic": "sender"}).join(newcomers, on="run")
    since = (
        gained.with_columns(step=-(-(pl.col("t_ns") - pl.col("start_ns")) // STEP_NS))
        .filter(step > 0)
        .group_by(*entry, "step")
        .agg(own_bytes=pl.col("gained").filter(is_own).sum(), all_bytes=pl.col("gained").sum())
        .sort("step")
        .with_columns(column.cum_sum().over(entry, order_by="step") for column in (own, total))
    )
    halves = since.select(*entry, "step", own_half="own_bytes", all_half="all_bytes")
    later = since.with_columns(step // 2, end=step)
    both = later.sort("step").join_asof(halves, on="step", by=entry, check_sortedness=False).filter(pl.col("end") > 1)
    latter = both.with_columns(own - pl.col("own_half").fill_null(0), total - pl.col("all_half").fill_null(0))
    fair = (own * pl.col("all") * 10 >= TENTHS * pl.col("own") * total) & (total > 0)
    first = latter.join(newcomers, on=entry).filter(fair).group_by(entry).agg(steps=pl.col("end").min())
    return newcomers.join(first, on=entry, how="left", maintain_order="left")


@query(
    Metric(
        "epoch.<traffic>_s",
        "s",
        "Mean time between two reductions of the window of a connection of a tcp entry: its reaction time.",
        "flows: state",
        lambda: (pl.when(pl.col("epochs") > 0).then(pl.col("span_ns")), pl.col("epochs") * NANOSECONDS),
    ),
    reads={"flows": ("t_ns", "flow", "state")},
)
def of_reductions(batch: Batch) -> pl.LazyFrame:
    """The time between the first and the last reduction of each connection, divided by the number of epochs between.

    A connection reduces its window when it enters one of the states of `REDUCING`.
    """
    time, reducing = pl.col("t_ns"), pl.col("state").is_in(REDUCING)
    samples = batch.rows("flows", "flow", "state").sort("t_ns", maintain_order=True)
    reduced = samples.filter(reducing & ~reducing.shift(fill_value=False).over("run", "flow"))
    flows = reduced.group_by("run", "flow").agg(span_ns=time.max() - time.min(), epochs=pl.len().cast(pl.Int64) - 1)
    found = flows.group_by("run", traffic_of_flow()).agg(pl.col("span_ns").sum(), pl.col("epochs").sum())
    return batch.traffic("tcp").join(found, on=["run", "traffic"], maintain_order="left")


def _newcomers(run: RunRecords) -> list[tuple[str, int, int, int]]:
    """The tcp entries that begin during others: name, start, number of connections, and of all connections then."""
    bulk = [entry for entry in traffic_named(run.scenario, "tcp") if entry.get("transfers", 1) == 1 and entry["flows"]]
    found = []
    for entry in bulk:
        start_ns = entry["start_ns"]
        others = sum(other["flows"] for other in bulk if other["start_ns"] < start_ns < other["stop_ns"])
        if others:
            found.append((entry["name"], start_ns, entry["flows"], entry["flows"] + others))
    return found


def _gained(batch: Batch) -> pl.LazyFrame:
    """The payload that each connection of a tcp entry delivered since its last sample: `run, traffic, t_ns, gained`."""
    bulk = batch.traffic("tcp", only=lambda entry: entry.get("transfers", 1) == 1)
    delivered = pl.col("delivered_bytes")
    samples = batch.table("flows", "t_ns", "flow", "delivered_bytes").sort("t_ns", maintain_order=True)
    return (
        samples.with_columns(gained=(delivered - delivered.shift(fill_value=0)).over("run", "flow"))
        .with_columns(traffic_of_flow())
        .join(bulk, on=["run", "traffic"], how="semi")
        .select("run", "traffic", "t_ns", "gained")
    )
