"""Metrics of entries that stand for several traffics, and of several probers, on records made by hand."""

import pytest
from handmade import IRTT, MS, PING, SECOND, TCP, HandmadeRun, Rows, probes, scenario

from bufferscope import metrics
from bufferscope.metrics.key_metrics import heading, key_metrics
from bufferscope.model.network import groups

PARTS = {"t.up.be": TCP, "t.up.ef": TCP, "t.down.be": TCP, "t.udp.ef": IRTT, "t.ping": PING}


def delivered(flow: str, mbit: float) -> Rows:
    """Two samples of a flow that has delivered so much in each of ten seconds."""
    bytes_in_all = round(10 * mbit * 1e6 / 8)
    return [{"t_ns": t, "flow": flow, "delivered_bytes": so_far} for t, so_far in ((0, 0), (10 * SECOND, bytes_in_all))]


def named(probe: str, rtts_ms: list[float | None]) -> Rows:
    return [{**row, "probe": probe} for row in probes(rtts_ms)]


def test_an_entry_and_each_direction_have_the_goodput_of_their_parts_together() -> None:
    flows = [
        row for name, mbit in (("up.be", 1), ("up.ef", 2), ("down.be", 4)) for row in delivered(f"t.{name}/1", mbit)
    ]
    run = HandmadeRun(scenario(PARTS), {"flows": flows})
    found = {name: value for name, value in metrics.compute(run).items() if name.endswith("_mbit")}
    assert found == pytest.approx({
        "goodput.total_mbit": 7, "goodput.t.up.be_mbit": 1, "goodput.t.up.ef_mbit": 2, "goodput.t.down.be_mbit": 4,
        "goodput.t_mbit": 7, "goodput.t.up_mbit": 3,
    })  # fmt: skip
    assert float(metrics.metric(run, "goodput.t.up_mbit")) == pytest.approx(3)


def test_parts_without_deliveries_have_a_goodput_of_zero() -> None:
    found = metrics.compute(HandmadeRun(scenario(PARTS), {"flows": delivered("t.up.be/1", 1)}))
    assert found["goodput.t.up_mbit"] == pytest.approx(1)
    assert found["goodput.t.down.be_mbit"] == 0


def test_a_group_of_one_part_has_no_name_of_its_own() -> None:
    network = scenario({**PARTS, "bulk": TCP, "n.up": TCP, "n.ping": PING})
    of_tcp = groups(network, "tcp")
    assert of_tcp == {"t": ["t.up.be", "t.up.ef", "t.down.be"], "t.up": ["t.up.be", "t.up.ef"]}
    assert "goodput.n_mbit" not in metrics.compute(HandmadeRun(network, {"flows": delivered("n.up/1", 1)}))


def test_several_probers_have_round_trip_times_together_and_each_its_own() -> None:
    rows = [*named("t.ping", [10, 20]), *named("t.udp.ef", [40, None])]
    found = metrics.compute(HandmadeRun(scenario(PARTS), {"probes": rows}))
    assert found["rtt.mean_ms"] == pytest.approx(70 / 3)
    assert (found["rtt.sent"], found["rtt.lost"]) == (4, 1)
    assert (found["rtt.t.ping.mean_ms"], found["rtt.t.ping.p50_ms"], found["rtt.t.ping.lost"]) == (15, 15, 0)
    assert (found["rtt.t.udp.ef.mean_ms"], found["rtt.t.udp.ef.max_ms"], found["rtt.t.udp.ef.lost"]) == (40, 40, 1)
    assert found.censored >= {"rtt.p99_ms", "rtt.t.udp.ef.p95_ms"}
    run = HandmadeRun(scenario(PARTS), {"probes": rows})
    assert float(metrics.metric(run, "rtt.t.ping.p25_ms")) == pytest.approx(12.5)


def test_a_lone_prober_has_no_metrics_beside_those_of_all() -> None:
    found = metrics.compute(HandmadeRun(scenario({"trips": IRTT}), {"probes": named("trips", [30, 50])}))
    assert [name for name in found if name.startswith("rtt.") and "trips" in name] == []
    assert (found["rtt.mean_ms"], found["rtt.answered"]) == (40, 2)


def test_packets_of_calls_are_no_round_trips() -> None:
    rows = [*named("trips", [30]), {"probe": "call/1", "rtt_ns": None, "owd_up_ns": 5 * MS}]
    assert metrics.compute(HandmadeRun(scenario({"trips": IRTT}), {"probes": rows}))["rtt.sent"] == 1


def test_tables_show_the_directions_of_a_test_first() -> None:
    names = key_metrics(scenario(PARTS))
    assert names == [
        *("rtt.p50_ms", "rtt.p95_ms", "rtt.max_ms", "rtt.lost"),
        *("goodput.total_mbit", "goodput.t.up_mbit", "goodput.t.down.be_mbit", "goodput.jain"),
    ]
    assert heading("goodput.t.up_mbit") == "t.up (Mbit/s)"
