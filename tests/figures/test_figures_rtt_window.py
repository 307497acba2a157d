"""The round-trip time that a sender saw, against the data that it had in flight."""

from typing import Any

import polars as pl
import pytest
from handmade import MS, MSS, TCP, UDP, HandmadeResult, HandmadeRun, scenario, sweep

from bufferscope import figures
from bufferscope.figures import parts


def samples(pairs: list[tuple[float, float]], flow: str = "bulk/1") -> list[dict[str, Any]]:
    """Packets in flight and round-trip times in ms."""
    return [
        {"flow": flow, "t_ns": n * MS, "inflight_bytes": round(packets * MSS), "srtt_ns": round(rtt * MS)}
        for n, (packets, rtt) in enumerate(pairs)
    ]


def marks(result: HandmadeResult) -> pl.DataFrame:
    spec = figures.draw(result, "rtt_window").to_dict()
    (data,) = spec["datasets"].values()
    return pl.DataFrame(data)


def run_of(rows: list[dict[str, Any]]) -> HandmadeRun:
    return HandmadeRun(scenario({"bulk": TCP, "load": UDP}), {"flows": rows})


def test_samples_are_marks_and_equal_ones_share_a_mark() -> None:
    found = marks(HandmadeResult([run_of(samples([(10, 100), (10, 100), (20, 200)]))]))
    assert found.select("packets", "rtt_ms", "samples").rows() == [(10, 100, 2), (20, 200, 1)]


def test_only_connections_that_have_measured_their_round_trip_are_shown() -> None:
    rows = [*samples([(5, 0), (10, 100)]), *samples([(30, 300)], "load/1")]
    assert marks(HandmadeResult([run_of(rows)]))["packets"].to_list() == [10]


def test_nothing_is_drawn_where_no_data_is_seen_in_flight() -> None:
    with pytest.raises(figures.NoDataError, match="near the receiver"):
        marks(HandmadeResult([run_of(samples([(0, 50), (0, 240)]))]))


def test_both_axes_are_linear_from_zero() -> None:
    spec = figures.draw(HandmadeResult([run_of(samples([(1, 1), (100, 1000)]))]), "rtt_window").to_dict()
    code = spec["layer"][0]["encoding"]
    assert code["x"]["scale"]["domain"] == [0, 103]
    assert code["y"]["scale"]["domain"] == [0, 1030]


def test_many_different_samples_are_thinned_to_what_a_chart_may_hold() -> None:
    pairs = [(float(n % 397) + 1, float(n * n % 991) + 1) for n in range(30_000)]
    found = marks(sweep(["50p", "100p", "20p"], lambda label: run_of(samples(pairs))))
    assert found.height <= parts.MOST_ROWS
    assert found["samples"].sum() == 3 * 30_000
