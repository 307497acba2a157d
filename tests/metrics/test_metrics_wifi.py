"""Metrics of ports on the air, on a run whose answer is known by arithmetic, and on the simulator."""

from pathlib import Path
from typing import Any

import pytest
from handmade import MS, PING, SECOND, HandmadeRun, scenario

import bufferscope as bs
from bufferscope import _core, metrics
from bufferscope.figures.source import points
from bufferscope.model.experiment import load
from bufferscope.report.topology import network

WIFI = {
    "name": "wlan",
    "access_point": 1,
    "stations": [{"link": 1, "error_rate": 0.0}],
    "queueing": {"kind": "mac80211", "airtime_fairness": True},
    "aggregate": {"frames": 64, "bytes": 65535, "time_ns": 4 * MS},
    "retries": 30,
}


def on_the_air(rows: list[dict[str, Any]]) -> HandmadeRun:
    """A run of ten seconds, of which metrics see the last nine, whose second link is on the air."""
    return HandmadeRun({**scenario({"ping": PING}, warmup_s=1), "wifi": [WIFI]}, {"queues": rows})


def sample(port: str, t_s: int, packets: int, transmissions: int, airtime_ms: int) -> dict[str, Any]:
    return {
        "t_ns": t_s * SECOND,
        "port": port,
        "layer": "ring",
        "sent_packets": packets,
        "transmissions": transmissions,
        "airtime_ns": airtime_ms * MS,
    }


def test_shares_of_the_air_time_and_aggregates_are_those_of_the_window() -> None:
    first = [sample("r1>h2", 0, 0, 0, 0), sample("h2>r1", 0, 0, 0, 0)]
    then = [sample("r1>h2", 1, 500, 500, 900), sample("h2>r1", 1, 0, 0, 0)]
    last = [sample("r1>h2", 10, 2_500, 700, 3_900), sample("h2>r1", 10, 90, 90, 1_000)]
    found = metrics.compute(on_the_air([*first, *then, *last]))
    # 3000 ms and 1000 ms of air time; 2000 packets in 200 aggregates.
    assert (found["airtime.r1>h2"], found["airtime.h2>r1"]) == (0.75, 0.25)
    assert (found["aggregate.r1>h2.mean_packets"], found["aggregate.h2>r1.mean_packets"]) == (10, 1)


def test_a_silent_network_has_no_shares() -> None:
    found = metrics.compute(on_the_air([sample(port, t_s, 0, 0, 0) for t_s in (1, 10) for port in ("r1>h2", "h2>r1")]))
    assert "airtime.r1>h2" not in found
    assert "aggregate.r1>h2.mean_packets" not in found


def test_a_port_with_a_wire_has_no_air_time() -> None:
    run = HandmadeRun(scenario({"ping": PING}), {"queues": [{"t_ns": 0}, {"t_ns": SECOND}]})
    with pytest.raises(metrics.NotMeasuredError):
        metrics.metric(run, "airtime.r1>h2")


EXPERIMENT = """
title = "A station"
duration = "2s"
wifi = [{ name = "wlan", access_point = "ap", links = ["air"] }]
link = [{ name = "air", ends = ["ap", "sta"], rate = "72.2mbit" }]
traffic = [{ name = "flood", kind = "udp", from = "ap", to = "sta", rate = "100mbit" }]
"""


def test_a_run_on_the_air_is_stored_measured_and_drawn(tmp_path: Path) -> None:
    file = tmp_path / "station.toml"
    file.write_text(EXPERIMENT)
    [run] = bs.run(file, out=tmp_path / "results").runs
    found = metrics.compute(run)
    assert found["airtime.ap>sta"] == 1
    # 4 ms at 72.2 Mbit/s are 36,100 bytes.
    assert 15 < found["aggregate.ap>sta.mean_packets"] < 25
    [link] = network(points(bs.load(tmp_path / "results" / "station"))).links
    assert "Wi-Fi wlan, queues of mac80211 with airtime fairness" in link.words


def test_kernels_refuse_a_radio_by_name(tmp_path: Path) -> None:
    file = tmp_path / "station.toml"
    file.write_text(EXPERIMENT)
    [point] = load(file).points
    with pytest.raises(_core.PlanError, match=r"wifi `wlan`: Linux' virtual radios .* use --engine sim"):
        _core.check_on_linux(point.core)
