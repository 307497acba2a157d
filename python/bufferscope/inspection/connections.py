"""The table of what was found: a row for each flow of data, computed from the records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bufferscope.inspection.reading import Summary
from bufferscope.store.run import Run

if TYPE_CHECKING:
    import polars as pl

MS, KB, MBIT = 1e6, 1e3, 1e6


@dataclass(frozen=True)
class Connection:
    """One direction of a connection that carried data."""

    flow: str
    sender: str
    """Address and port."""
    receiver: str
    facts: Mapping[str, float | None]
    """By names that end in their units; None: the capture does not show it."""
    retransmissions: Mapping[str, int]
    """Segments sent again, by kind; `spurious` counts those among them whose first copy had arrived."""


def connections(run: Run, summary: Summary) -> list[Connection]:
    """All flows of a run, those with the most data first."""
    import polars as pl

    samples = _by_flow(_samples(run))
    halves = _halves(run)
    repeated = run.retransmissions.group_by("flow", "kind").agg(pl.len(), pl.col("spurious").sum())
    found = [
        Connection(
            flow["name"],
            _end(flow["from"]),
            _end(flow["to"]),
            _facts(samples.get(flow["name"], {}), halves.get(flow["name"], {}), flow),
            _kinds(repeated.filter(flow=flow["name"])),
        )
        for flow in summary.get("flows", ())
    ]
    return sorted(found, key=lambda each: -(each.facts["delivered_kb"] or 0))


def document(found: Sequence[Connection]) -> list[dict[str, object]]:
    """Connections for `--json`."""
    return [
        {
            "flow": each.flow,
            "from": each.sender,
            "to": each.receiver,
            **{name: None if value is None else round(value, 4) for name, value in each.facts.items()},
            "retransmissions": dict(each.retransmissions),
        }
        for each in found
    ]


def _samples(run: Run) -> "pl.DataFrame":
    import polars as pl

    return run.flows.group_by("flow").agg(
        pl.col("t_ns").min().alias("first_ns"),
        pl.col("t_ns").max().alias("last_ns"),
        pl.col("delivered_bytes").max().alias("delivered_bytes"),
        pl.col("inflight_bytes").max().alias("inflight_bytes"),
        pl.col("rwnd_bytes").max().alias("rwnd_bytes"),
    )


def _halves(run: Run) -> dict[str, dict[str, float]]:
    """Quantiles of the round-trip time by flow: of the half with the longer one, and the smallest of both."""
    import polars as pl

    rtt = pl.col("rtt_ns")
    frame = run.round_trips.group_by("flow", "half").agg(
        rtt.min().alias("min"), rtt.median().alias("median"), rtt.quantile(0.95, "linear").alias("p95")
    )
    found: dict[str, dict[str, float]] = {}
    for row in frame.sort("median").iter_rows(named=True):
        # The last row of a flow is that of the half with the longer median.
        found[row["flow"]] = {key: row[key] for key in ("min", "median", "p95")}
    return found


def _by_flow(frame: "pl.DataFrame") -> dict[str, dict[str, Any]]:
    return {row["flow"]: row for row in frame.iter_rows(named=True)}


def _facts(samples: Mapping[str, Any], rtt: Mapping[str, float], flow: Mapping[str, Any]) -> dict[str, float | None]:
    delivered = samples.get("delivered_bytes")
    lasted_ns = (samples["last_ns"] - samples["first_ns"]) if samples else 0
    return {
        "delivered_kb": None if delivered is None else delivered / KB,
        "duration_s": lasted_ns / 1e9,
        "goodput_mbit": None if delivered is None or lasted_ns <= 0 else delivered * 8e9 / lasted_ns / MBIT,
        "rtt_min_ms": _over(rtt.get("min"), MS),
        "rtt_median_ms": _over(rtt.get("median"), MS),
        "rtt_p95_ms": _over(rtt.get("p95"), MS),
        "inflight_max_kb": _over(samples.get("inflight_bytes"), KB),
        "window_max_kb": _over(samples.get("rwnd_bytes"), KB),
        "marks": flow.get("ce_marks"),
    }


def _over(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


def _kinds(frame: "pl.DataFrame") -> dict[str, int]:
    kinds = dict(frame.select("kind", "len").sort("kind").iter_rows())
    spurious = int(frame["spurious"].sum() or 0)
    return {**kinds, "spurious": spurious} if spurious else kinds


def _end(end: Mapping[str, Any]) -> str:
    address = str(end["address"])
    return f"[{address}]:{end['port']}" if ":" in address else f"{address}:{end['port']}"
