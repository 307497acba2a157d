"""Flows that share a flow queue: the hash of a discipline with flow queueing gave both the same one.

The simulator records whose packets a flow queue holds. A kernel does not: its class statistics have the packets of a
queue without their flow. There, sharing is derived where a single flow queue holds packets. A TCP connection whose
round trips are much longer than its own packets take, and for which no other port accounts, waits in that queue.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bufferscope.base.libraries import polars as pl
from bufferscope.metrics.capacity import capacities
from bufferscope.metrics.kept import once
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.window import Window
from bufferscope.model.network import (
    CARRYING,
    NANOSECONDS,
    Port,
    path,
    ports,
    traffic_ends,
    traffic_named,
    traffic_of_flow,
)
from bufferscope.model.scenario import Scenario

LEAST_SAMPLES = 10
"""Fewer samples with both flows in one queue show a moment, such as that between two perturbations of `sfq`."""
LEAST_SHARE = 0.5
"""Two flows share a queue if they do in at least this share of the samples of the flow that has fewer."""
FACTOR = 2
"""A connection waits behind another flow if it waits at least so many times as long as anything else explains."""


@dataclass(frozen=True)
class Sharing:
    """Two flows whose packets were in the same flow queue of a port."""

    port: str
    flow: str
    """The one with fewer packets there."""
    other: str
    share: float
    """The share of the samples with a flow's packets that show it; of the flow that is in fewer samples."""
    queues: int | None
    """Two flows get the same queue once in so many times; None if the discipline avoids collisions."""
    is_derived: bool
    """Whether the engine does not record whose packets a queue holds."""

    @property
    def sentence(self) -> str:
        """It in words, without a full stop."""
        chance = f", which happens to two flows once in {self.queues:,}" if (self.queues or 0) > 1 else ""
        return f"{self.flow} shares its flow queue in {self.port} with {self.other}{chance}"


@once
def sharing(run: RunRecords) -> list[Sharing]:
    """The flows of a run that share a flow queue, in the order of the ports; none if flow queues were not recorded."""
    window = Window.of(run)
    rows = window.rows(run.flow_queues)
    if rows.is_empty():
        return []
    known = ports(run.scenario)
    found = [*_recorded(rows, known), *_derived(run, rows, window, known)]
    return sorted(found, key=lambda each: list(known).index(each.port))


def _recorded(rows: pl.DataFrame, known: Mapping[str, Port]) -> Iterator[Sharing]:
    """From the flows of the packets. A flow is compared only with the one that has most packets in its queue."""
    named = rows.filter(pl.col("flow").is_not_null())
    queue = ["t_ns", "port", "queue"]
    samples = named.group_by("port", "flow").agg(samples=pl.col("t_ns").n_unique(), packets=pl.col("packets").sum())
    first = named.sort(*queue, "packets", "flow", descending=[False, False, False, True, False]).with_columns(
        other=pl.col("flow").first().over(queue)
    )
    pairs = (
        first.filter(pl.col("flow") != pl.col("other"))
        .select("port", pl.min_horizontal("flow", "other"), other=pl.max_horizontal("flow", "other"))
        .group_by("port", "flow", "other")
        .agg(together=pl.len())
        .join(samples, on=["port", "flow"])
        .join(samples.select("port", other="flow", others="samples", most="packets"), on=["port", "other"])
        .sort("port", "flow", "other")
    )
    for row in pairs.iter_rows(named=True):
        rarer = min(row["samples"], row["others"])
        if row["together"] >= LEAST_SAMPLES and row["together"] >= LEAST_SHARE * rarer:
            flow, other = row["flow"], row["other"]
            if row["packets"] > row["most"]:
                flow, other = other, flow
            queues = buckets(known[row["port"]].queue)
            yield Sharing(row["port"], flow, other, min(1.0, row["together"] / rarer), queues, is_derived=False)


def _derived(run: RunRecords, rows: pl.DataFrame, window: Window, known: Mapping[str, Port]) -> Iterator[Sharing]:
    """From the number of queues with packets, and from what each connection waits."""
    unnamed = rows.filter(pl.col("flow").is_null())
    if unnamed.is_empty():
        return
    rates = {
        name: capacity.bits(window.start_ns, window.end_ns) / window.seconds
        for name, capacity in capacities(run).items()
    }
    held = (
        unnamed.group_by("t_ns", "port")
        .agg(occupied=pl.len(), held_bytes=pl.col("bytes").sum())
        .filter(pl.col("occupied") == 1)
        .sort("t_ns")
    )
    columns = ("t_ns", "flow", "inflight_bytes", "srtt_ns", "min_rtt_ns")
    flows = window.rows(run.flows).select(*columns, traffic_of_flow()).sort("t_ns", maintain_order=True)
    of_flow = flows.partition_by("flow", "traffic", as_dict=True, maintain_order=True)
    for (port,), samples in held.partition_by("port", as_dict=True, maintain_order=True).items():
        if port not in rates:
            continue
        across = _crossing(run.scenario, str(port))
        own = {str(flow): rows for (flow, traffic), rows in of_flow.items() if traffic in across}
        for flow, mine in own.items():
            elsewhere_s = _elsewhere_s(run, rates, window, across[mine["traffic"][0]], str(port))
            waiting = _waiting(mine, samples, rates[str(port)], elsewhere_s)
            others = [_beside(waiting, flow, other, rows) for other, rows in own.items() if other != flow]
            other, together = max(others, key=lambda each: each[1], default=("", 0))
            all_samples = _samples(unnamed, str(port), mine)
            if together >= LEAST_SAMPLES and together >= LEAST_SHARE * all_samples:
                queues = buckets(known[str(port)].queue)
                yield Sharing(str(port), flow, other, min(1.0, together / all_samples), queues, is_derived=True)


def _samples(rows: pl.DataFrame, port: str, mine: pl.DataFrame) -> int:
    """The number of samples with packets in a port's flow queues while a connection exists.

    Connections may be sampled more often.
    """
    times = rows.filter(pl.col("port") == port)["t_ns"].unique()
    return int(times.is_between(mine["t_ns"][0], mine["t_ns"][-1]).sum())


def _crossing(scenario: Scenario, port: str) -> dict[str, list[str]]:
    """The traffic whose data crosses a port, with all ports of its round trip."""
    found = {}
    for entry in traffic_named(scenario, *CARRYING):
        near, far = traffic_ends(scenario, entry)
        out = [each.name for each in path(scenario, near, far)]
        if port in out:
            found[entry["name"]] = [*out, *(each.name for each in path(scenario, far, near))]
    return found


def _elsewhere_s(
    run: RunRecords, rates: Mapping[str, float], window: Window, round_trip: list[str], port: str
) -> float:
    """How long packets wait in the other ports of a round trip, on average; `rates` are in bit/s."""
    rows = window.rows(run.queues).filter(pl.col("port").is_in(round_trip) & (pl.col("port") != port))
    means = rows.group_by("port", "layer").agg(pl.col("bytes").mean())
    waits = (row["bytes"] * 8 / rates[row["port"]] for row in means.iter_rows(named=True) if rates.get(row["port"]))
    return float(sum(waits))


def _waiting(mine: pl.DataFrame, samples: pl.DataFrame, rate_bps: float, elsewhere_s: float) -> pl.DataFrame:
    """The samples of a port with one occupied queue in which a connection waits for packets of another flow.

    With a queue of its own, it would wait for its own packets, while the other queue sends as many bytes.
    """
    near = samples.join_asof(mine, on="t_ns", strategy="nearest")
    own_s = 2 * pl.col("inflight_bytes") * 8 / rate_bps
    waits_s = (pl.col("srtt_ns") - pl.col("min_rtt_ns")) / NANOSECONDS
    held_s = pl.col("held_bytes") * 8 / rate_bps
    return near.filter(
        (pl.col("inflight_bytes") > 0) & (waits_s > FACTOR * (own_s + elsewhere_s)) & (held_s * FACTOR >= waits_s)
    ).select("t_ns", "held_bytes")


def _beside(waiting: pl.DataFrame, flow: str, other: str, theirs: pl.DataFrame) -> tuple[str, int]:
    """Another flow, and in how many of these samples it has at least half of the queued bytes under way."""
    near = waiting.join_asof(theirs, on="t_ns", strategy="nearest")
    return other, near.filter(pl.col("inflight_bytes") * FACTOR >= pl.col("held_bytes")).height


def buckets(queue: Mapping[str, object]) -> int | None:
    """The number of values of the hash by which a discipline, or the one inside it, chooses a flow's queue.

    None for disciplines that avoid collisions (`fq`, `cake`), and for several inner disciplines.

    >>> buckets({"qdisc": "tbf", "inner": {"qdisc": "sfq", "divisor": 1024, "flows": 127}})
    1024
    """
    match queue:
        case {"qdisc": "fq_codel" | "fq_pie", "flows": int(number)} | {"qdisc": "sfq", "divisor": int(number)}:
            return number
        case {"inner": Mapping() as inner}:
            return buckets(inner)
        case _:
            return None
