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
    windows = {row["flow"]: row["rwnd_bytes"] for row in _windows(run).iter_rows(named=True)}
    rtt = _round_trips(run)
    found = [
        Connection(
            flow["name"],
            _end(flow["from"]),
            _end(flow["to"]),
            _facts(flow, rtt.get(flow["name"], {}), windows.get(flow["name"])),
            {kind: number for kind, number in flow["retransmissions"].items() if number},
        )
        for flow in summary["flows"]
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


def _windows(run: Run) -> "pl.DataFrame":
    """The largest window that each flow's receiver advertised."""
    import polars as pl

    return run.flows.group_by("flow").agg(pl.col("rwnd_bytes").max())


def _round_trips(run: Run) -> dict[str, dict[str, float]]:
    """Round-trip times by flow: the sum of both halves of the path, of which one is about 0 in a capture at an end."""
    import polars as pl

    rtt = pl.col("rtt_ns")
    quantiles = {"min": rtt.min(), "median": rtt.median(), "p95": rtt.quantile(0.95, "linear")}
    # A segment and its timestamp are two witnesses of the same: the first, if there is one.
    is_better = pl.col("method") == pl.col("method").min().over("flow", "half")
    by_half = run.round_trips.filter(is_better).group_by("flow", "half").agg(**quantiles)
    paths = by_half.group_by("flow").agg(pl.col(list(quantiles)).sum())
    return {row["flow"]: row for row in paths.iter_rows(named=True)}


def _facts(flow: Mapping[str, Any], rtt: Mapping[str, float], window_bytes: int | None) -> dict[str, float | None]:
    delivered = flow["delivered_bytes"]
    lasted_ns = flow["last_ns"] - flow["first_ns"]
    return {
        "delivered_kb": _over(delivered, KB),
        "duration_s": lasted_ns / 1e9,
        "goodput_mbit": None if delivered is None or lasted_ns <= 0 else delivered * 8e9 / lasted_ns / MBIT,
        "rtt_min_ms": _over(rtt.get("min"), MS),
        "rtt_median_ms": _over(rtt.get("median"), MS),
        "rtt_p95_ms": _over(rtt.get("p95"), MS),
        "inflight_max_kb": _over(flow["largest_flight_bytes"], KB),
        "window_max_kb": _over(window_bytes, KB),
        "marks": flow["ce_marks"],
    }


def _over(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


def _end(end: Mapping[str, Any]) -> str:
    address, port = end["address"], end["port"]
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
