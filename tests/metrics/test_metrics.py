"""Every metric on runs whose answer is known by arithmetic."""

import math
import re

import polars as pl
import pytest
from handmade import (
    GAME,
    IRTT,
    MS,
    MSS,
    NETALYZR,
    PING,
    SECOND,
    TCP,
    UDP,
    VIDEO,
    VOIP,
    WEB,
    HandmadeRun,
    Rows,
    estimates,
    probes,
    scenario,
)

from bufferscope import _core, metrics
from bufferscope.metrics.declared import queries
from bufferscope.metrics.key_metrics import heading, key_metrics
from bufferscope.model.metric_definitions import definitions
from bufferscope.model.network import path, ports


def test_rtt_of_four_answered_and_one_lost_probe() -> None:
    run = HandmadeRun(scenario({"ping": PING}), {"probes": probes([10, 20, 30, 40, None])})
    found = metrics.compute(run)
    assert found["rtt.mean_ms"] == 25
    assert found["rtt.max_ms"] == 40
    assert (found["rtt.sent"], found["rtt.answered"], found["rtt.lost"]) == (5, 4, 1)
    assert found["rtt.p50_ms"] == 30  # rank 2 of 0..4
    assert found["rtt.p5_ms"] == pytest.approx(12)  # rank 0.2
    assert found["rtt.p95_ms"] == math.inf  # rank 3.8 lies between 40 ms and lost
    assert found.censored == {"rtt.p95_ms", "rtt.p99_ms"}


def test_probes_sent_before_the_warmup_do_not_count() -> None:
    run = HandmadeRun(scenario({"ping": PING}, warmup_s=0.2), {"probes": probes([500, 500, 10, 20])})
    assert metrics.compute(run)["rtt.mean_ms"] == 15
    assert metrics.compute(run)["rtt.sent"] == 2


def test_a_probe_answered_after_the_duration_counts_by_when_it_was_sent() -> None:
    run = HandmadeRun(scenario({"ping": PING}, duration_s=0.1), {"probes": probes([10, 5000, 20])})
    assert metrics.compute(run)["rtt.sent"] == 2
    assert metrics.compute(run)["rtt.max_ms"] == 5000


def test_when_every_probe_is_lost_there_is_no_mean_and_every_percentile_is_censored() -> None:
    run = HandmadeRun(scenario({"ping": PING}), {"probes": probes([None, None])})
    found = metrics.compute(run)
    assert "rtt.mean_ms" not in found
    assert "rtt.max_ms" not in found
    assert metrics.metric(run, "rtt.p5_ms").censored
    with pytest.raises(metrics.NotMeasuredError, match=r"rtt\.mean_ms: run handmade has no record"):
        metrics.metric(run, "rtt.mean_ms")


def test_any_whole_percentile_on_demand() -> None:
    run = HandmadeRun(scenario({"ping": PING}), {"probes": probes([float(n) for n in range(101)])})
    assert float(metrics.metric(run, "rtt.p30_ms")) == 30
    assert float(metrics.metric(run, "rtt.p100_ms")) == 100
    with pytest.raises(metrics.UnknownMetricError):
        metrics.metric(run, "rtt.p101_ms")


def test_any_whole_percentile_of_queues_sojourns_and_transfers() -> None:
    queues = [{"t_ns": n * 10 * MS, "packets": n} for n in range(101)]
    sojourns = [{"t_ns": 0, "sojourn_ns": n * MS, "packets": 1} for n in range(101)]
    pages = [{"traffic": "web", "flow": f"web/{n}", "started_ns": 0, "finished_ns": n * SECOND} for n in range(101)]
    run = HandmadeRun(scenario({"web": WEB}), {"queues": queues, "sojourns": sojourns, "transfers": pages})
    assert float(metrics.metric(run, "queue.r1>h2.p5_packets")) == 5
    assert float(metrics.metric(run, "sojourn.r1>h2.p7_ms")) == 7
    assert float(metrics.metric(run, "transfer.web.p40_s")) == 40
    with pytest.raises(metrics.NotMeasuredError):
        metrics.metric(run, "ring.r1>h2.p5_packets")


def _samples(flow: str, delivered: list[int], every_ms: int = 1000, **columns: list[int]) -> Rows:
    return [
        {"flow": flow, "t_ns": n * every_ms * MS, "delivered_bytes": done, **{k: v[n] for k, v in columns.items()}}
        for n, done in enumerate(delivered)
    ]


def test_traffic_without_flows_has_no_goodput_and_no_part_in_fairness() -> None:
    rows = _samples("bulk/1", [0, 1_000_000, 2_000_000])
    run = HandmadeRun(scenario({"bulk": TCP, "rival": TCP | {"flows": 0}}, duration_s=2), {"flows": rows})
    found = metrics.compute(run)
    assert (found["goodput.bulk_mbit"], found["goodput.rival_mbit"], found["goodput.jain"]) == (8, 0, 1)
    assert "cwnd.rival.mean_packets" not in found
    idle = metrics.compute(HandmadeRun(scenario({"rival": TCP | {"flows": 0}})))
    assert (idle["goodput.rival_mbit"], idle["retransmits.total"]) == (0, 0)
    assert "goodput.jain" not in idle


def test_a_page_over_several_connections_is_counted_by_its_connections() -> None:
    # 100 kB over two connections in 1 s are 0.8 Mbit/s; the page's row is named after the first of them.
    rows = _samples("web/1", [0, 60_000]) + _samples("web/2", [0, 40_000])
    page = {"traffic": "web", "flow": "web/1", "started_ns": 0, "finished_ns": SECOND // 2, "bytes": 100_000}
    objects = {"count": 4, "bytes": 20_000, "connections": 2}
    run = HandmadeRun(scenario({"web": WEB | {"objects": objects}}, duration_s=1), {"flows": rows, "transfers": [page]})
    assert metrics.compute(run)["goodput.web_mbit"] == pytest.approx(0.8)
    assert metrics.compute(run)["transfer.web.max_s"] == 0.5


def test_the_transfers_of_one_flow_are_no_rivals() -> None:
    rows = _samples("bulk/1", [0, 1000]) + _samples("bulk/2", [0, 10])
    files = TCP | {"bytes": 1000, "transfers": 2}
    run = HandmadeRun(scenario({"bulk": files}, duration_s=1), {"flows": rows})
    assert "goodput.jain" not in metrics.compute(run)


def test_goodput_is_what_was_delivered_in_the_window_per_second() -> None:
    # Window 1 s .. 4 s. bulk/1: 4,000,000 - 1,000,000 bytes in 3 s = 8 Mbit/s; bulk/2: 750,000 bytes = 2 Mbit/s.
    rows = _samples("bulk/1", [0, 1_000_000, 2_000_000, 3_000_000, 4_000_000])
    rows += _samples("bulk/2", [0, 0, 250_000, 500_000, 750_000])
    run = HandmadeRun(scenario({"bulk": TCP}, duration_s=4, warmup_s=1), {"flows": rows})
    found = metrics.compute(run)
    assert found["goodput.bulk_mbit"] == pytest.approx(10)
    assert found["goodput.total_mbit"] == pytest.approx(10)
    assert found["goodput.jain"] == pytest.approx(100 / (2 * (64 + 4)))  # (8 + 2)^2 / (2 (8^2 + 2^2))


def test_a_connection_that_ends_between_samples_keeps_its_last_bytes() -> None:
    # Sampled at 0 s with 50,000 bytes; the page of 100,000 bytes is whole at 0.4 s; a second page is never sampled.
    flows = [{"flow": "web/1", "t_ns": 0, "delivered_bytes": 50_000}]
    pages = [
        {"traffic": "web", "flow": "web/1", "started_ns": 0, "finished_ns": 400 * MS, "bytes": 100_000},
        {"traffic": "web", "flow": "web/2", "started_ns": 500 * MS, "finished_ns": 505 * MS, "bytes": 25_000},
        {"traffic": "web", "flow": "web/3", "started_ns": 900 * MS, "finished_ns": None, "bytes": 100_000},
    ]
    run = HandmadeRun(scenario({"web": WEB}, duration_s=1), {"flows": flows, "transfers": pages})
    assert metrics.compute(run)["goodput.web_mbit"] == pytest.approx((125_000 - 50_000) * 8 / 1e6)
    assert "goodput.jain" not in metrics.compute(run)  # fairness is between bulk connections


def test_web_flows_are_not_taken_for_bulk_of_a_similar_name() -> None:
    rows = _samples("bulk/1", [0, 125_000]) + _samples("bulk-2/1", [0, 250_000])
    run = HandmadeRun(scenario({"bulk": TCP, "bulk-2": TCP}, duration_s=1), {"flows": rows})
    assert metrics.compute(run)["goodput.bulk_mbit"] == pytest.approx(1)
    assert metrics.compute(run)["goodput.bulk-2_mbit"] == pytest.approx(2)


def test_queue_lengths_by_port() -> None:
    rows: Rows = [{"t_ns": n * SECOND, "packets": n} for n in range(5)]
    rows += [{"t_ns": n * SECOND, "packets": 7, "port": "h2>r1"} for n in range(5)]
    found = metrics.compute(HandmadeRun(scenario({}, duration_s=3), {"queues": rows}))
    assert found["queue.r1>h2.mean_packets"] == 1.5  # 0..3: the sample at 4 s lies outside
    assert found["queue.r1>h2.p50_packets"] == 1.5
    assert found["queue.r1>h2.max_packets"] == 3
    assert found["queue.h2>r1.max_packets"] == 7
    assert not [name for name in found if name.startswith("ring.")]


def test_a_ring_is_measured_apart_from_the_qdisc_and_is_what_sends() -> None:
    rows: Rows = [{"t_ns": n * SECOND, "packets": 10, "bytes": 10_000, "sent_bytes": 0} for n in range(3)]
    rows += [{"t_ns": n * SECOND, "packets": 2, "bytes": 3_000, "layer": "ring", "sent_bytes": n * 1_000_000}
             for n in range(3)]  # fmt: skip
    found = metrics.compute(HandmadeRun(scenario({}, duration_s=2), {"queues": rows}))
    assert (found["queue.r1>h2.max_packets"], found["ring.r1>h2.max_packets"]) == (10, 2)
    assert found["utilization.r1>h2"] == pytest.approx(2_000_000 * 8 / 20e6)


def test_utilization_divides_by_the_scheduled_capacity() -> None:
    # 10 Mbit/s for 1 s, then 2 Mbit/s for 2 s: 14 Mbit fit, 1,400,000 bytes = 11.2 Mbit were sent.
    rows = [{"t_ns": 0}, {"t_ns": SECOND, "sent_bytes": 1_000_000}, {"t_ns": 3 * SECOND, "sent_bytes": 1_400_000}]
    run = HandmadeRun(scenario({}, duration_s=3, rate=[(0, 10_000_000), (SECOND, 2_000_000)]), {"queues": rows})
    assert metrics.compute(run)["utilization.r1>h2"] == pytest.approx(0.8)


def test_delay_share_is_the_part_of_the_waiting_time_not_of_the_bytes() -> None:
    # r1>h2: 10,000 bytes at 10 Mbit/s = 8 ms, then at 1 Mbit/s = 80 ms: mean 44 ms. h2>r1 the same rate, 1,250 bytes:
    # 1 ms, then 10 ms: mean 5.5 ms.
    rows: Rows = [{"t_ns": t * SECOND, "bytes": 10_000} for t in (0, 1)]
    rows += [{"t_ns": t * SECOND, "bytes": 1_250, "port": "h2>r1"} for t in (0, 1)]
    run = HandmadeRun(scenario({}, duration_s=1, rate=[(0, 10_000_000), (SECOND, 1_000_000)]), {"queues": rows})
    found = metrics.compute(run)
    assert found["delay_share.r1>h2"] == pytest.approx(44 / 49.5)
    assert found["delay_share.h2>r1"] == pytest.approx(5.5 / 49.5)


def test_ring_share_is_the_part_of_a_port_s_backlog_that_is_in_its_ring() -> None:
    rows: Rows = [{"t_ns": n * SECOND, "packets": 2, "bytes": 3_000} for n in range(3)]
    rows += [{"t_ns": n * SECOND, "packets": 6, "bytes": 9_000, "layer": "ring"} for n in range(3)]
    rows += [{"t_ns": n * SECOND, "packets": 1, "bytes": 1_000, "port": "h2>r1"} for n in range(3)]
    found = metrics.compute(HandmadeRun(scenario({"bulk": TCP}), rows={"queues": rows}))
    assert found["ring_share.r1>h2"] == pytest.approx(0.75)
    assert "ring_share.h2>r1" not in found


def test_delay_share_is_not_measured_where_nothing_queues() -> None:
    run = HandmadeRun(scenario({}), {"queues": [{"t_ns": 0}]})
    with pytest.raises(metrics.NotMeasuredError):
        metrics.metric(run, "delay_share.r1>h2")


def test_a_mark_is_not_a_drop() -> None:
    reasons = ["overlimit", "red_early", "red_forced", "codel", "red_mark", "codel_mark"]
    rows = [{"t_ns": n * SECOND, "reason": reason, "flow": "bulk/1"} for n, reason in enumerate(reasons)]
    found = metrics.compute(HandmadeRun(scenario({}, duration_s=4.5, warmup_s=0.5), {"drops": rows}))
    assert (found["drops.r1>h2"], found["marks.r1>h2"]) == (3, 1)
    assert (found["drops.h2>r1"], found["marks.h2>r1"]) == (0, 0)
    assert "drops.h1>r1" not in found  # no rate: nothing can queue or drop there


def test_sojourn_percentiles_weigh_by_packets() -> None:
    # 99 packets stayed 1 ms, 1 packet 101 ms. p99: rank 98.01 -> 1 % of the way from 1 to 101 ms.
    rows: Rows = [{"t_ns": 0, "sojourn_ns": MS, "packets": 99}, {"t_ns": 0, "sojourn_ns": 101 * MS, "packets": 1}]
    rows += [{"t_ns": 0, "sojourn_ns": 999 * MS, "packets": 50, "layer": "ring"}]
    found = metrics.compute(HandmadeRun(scenario({}), {"sojourns": rows}))
    assert found["sojourn.r1>h2.p50_ms"] == 1
    assert found["sojourn.r1>h2.p99_ms"] == pytest.approx(2)


def test_what_an_engine_cannot_measure_is_told_and_not_zero() -> None:
    summary = {"not_measured": ["sojourns"]}
    run = HandmadeRun(scenario({}), {"queues": [{"t_ns": 0}]}, engine="guest", summary=summary)
    assert metrics.not_measured(run) == ["sojourn.r1>h2.p<N>_ms", "sojourn.h2>r1.p<N>_ms"]
    assert not [name for name in metrics.compute(run) if name.startswith("sojourn")]
    with pytest.raises(metrics.NotMeasuredError, match=r"p30_ms: not measured by the engine guest"):
        metrics.metric(run, "sojourn.r1>h2.p30_ms")
    assert metrics.not_measured(HandmadeRun(scenario({}))) == []


def test_metrics_of_a_table_that_is_not_recorded_are_missing_and_not_zero() -> None:
    recorded = scenario({"bulk": TCP, "ping": PING}) | {"record": ["probes", "queues", "transfers"]}
    run = HandmadeRun(recorded, {"queues": [{"t_ns": 0}], "probes": probes([10])})
    assert metrics.not_recorded(run) == [
        "flows",
        "drops",
        "sojourns",
        "capacity",
        "estimates",
        "round_trips",
        "retransmissions",
        "one_way",
    ]
    assert {name.split(".")[0] for name in metrics.compute(run)} == {"rtt", "answered", "queue"}
    with pytest.raises(metrics.NotMeasuredError) as caught:
        metrics.metric(run, "goodput.bulk_mbit")
    said = 'goodput.bulk_mbit: flows are not recorded: record = ["probes", "queues", "transfers"] (run handmade)'
    assert str(caught.value) == said
    with pytest.raises(metrics.NotMeasuredError, match=r"utilization.r1>h2: capacity is not recorded"):
        metrics.metric(run, "utilization.r1>h2")
    with pytest.raises(metrics.NotMeasuredError, match="p30_ms: sojourns are not recorded"):
        metrics.metric(run, "sojourn.r1>h2.p30_ms")
    with pytest.raises(metrics.UnknownMetricError):
        metrics.metric(run, "goodput.blk_mbit")


def test_a_table_that_is_neither_measured_nor_recorded_is_told_once() -> None:
    run = HandmadeRun(scenario({}) | {"record": ["queues"]}, engine="guest", summary={"not_measured": ["sojourns"]})
    assert metrics.not_measured(run) == []
    assert "sojourns" in metrics.not_recorded(run)


def test_drops_that_were_only_counted_count_like_any_other() -> None:
    seen = [{"t_ns": n, "flow": "bulk/1", "bytes": 1514, "reason": "red_early", "observed": "packet"} for n in (1, 2)]
    counted = [{"t_ns": n, "flow": None, "bytes": None, "reason": "red", "observed": "counter"} for n in (1, 2)]
    mark = {"t_ns": 3, "flow": None, "bytes": None, "reason": "red_mark", "observed": "counter"}
    for rows in (seen, counted):
        found = metrics.compute(HandmadeRun(scenario({}), {"drops": [*rows, mark]}))
        assert (found["drops.r1>h2"], found["marks.r1>h2"]) == (2, 1)


def test_cwnd_and_retransmissions() -> None:
    rows = _samples("bulk/1", [0, 0, 0], cwnd_bytes=[10 * MSS, 20 * MSS, 60 * MSS], retransmits=[0, 4, 9])
    rows += _samples("bulk/2", [0], retransmits=[2])  # closed before the second sample: keeps what it had
    run = HandmadeRun(scenario({"bulk": TCP}, duration_s=2), {"flows": rows})
    found = metrics.compute(run)
    assert found["cwnd.bulk.max_packets"] == 60
    assert found["cwnd.bulk.mean_packets"] == pytest.approx(90 / 4)
    assert found["retransmits.total"] == 9
    late = HandmadeRun(scenario({"bulk": TCP}, duration_s=2, warmup_s=1), {"flows": rows})
    assert metrics.compute(late)["retransmits.total"] == 5


def test_what_waits_in_the_senders_is_time_by_littles_law() -> None:
    # Two flows hold 40 kB together in the first second and 45 kB in the second, and 100 kB a second leave.
    rows = _samples("bulk/1", [0, 50_000, 100_000], notsent_bytes=[10_000, 30_000, 20_000])
    rows += _samples("bulk/2", [0, 50_000, 100_000], notsent_bytes=[20_000, 20_000, 20_000])
    found = metrics.compute(HandmadeRun(scenario({"bulk": TCP}, duration_s=2), {"flows": rows}))
    assert found["unsent.bulk_ms"] == pytest.approx(1000 * 42_500 / 100_000)
    # A kernel's connections are sampled one after the other.
    later = [row | {"t_ns": row["t_ns"] - 1000 * (row["flow"] == "bulk/1")} for row in rows if row["t_ns"]]
    found = metrics.compute(HandmadeRun(scenario({"bulk": TCP}, duration_s=2, warmup_s=0.5), {"flows": later}))
    assert found["unsent.bulk_ms"] == pytest.approx(1000 * 45_000 / 200_000)
    silent = _samples("bulk/1", [0, 0, 0], notsent_bytes=[0, 0, 0])
    assert "unsent.bulk_ms" not in metrics.compute(
        HandmadeRun(scenario({"bulk": TCP}, duration_s=2), {"flows": silent})
    )


def test_percentiles_of_the_answered_probes_leave_the_lost_ones_out() -> None:
    run = HandmadeRun(scenario({"ping": PING}), {"probes": probes([30, None, 10, None, 20])})
    found = metrics.compute(run)
    assert found["answered.p50_ms"] == 20
    assert found["answered.p95_ms"] == pytest.approx(29)  # rank 1.9 of 0..2
    assert float(metrics.metric(run, "answered.p25_ms")) == 15
    silent = HandmadeRun(scenario({"ping": PING}), {"probes": probes([None, None])})
    assert "answered.p50_ms" not in metrics.compute(silent)


def test_the_receivers_windows_and_for_how_long_they_were_the_limit() -> None:
    rows = _samples("bulk/1", [0, 0, 0], rwnd_bytes=[65_000, 4_000_000, 3_000_000])
    rows += _samples("bulk/2", [0, 0, 0], rwnd_bytes=[65_000, 70_000, 5_000_000])
    for row, (busy, limited) in zip(rows, [(0, 0), (800, 100), (1600, 300), (0, 0), (400, 0), (400, 100)], strict=True):
        row |= {"busy_ns": busy * MS, "rwnd_limited_ns": limited * MS}
    found = metrics.compute(HandmadeRun(scenario({"bulk": TCP}, duration_s=2), {"flows": rows}))
    assert found["rwnd.bulk.max_bytes"] == 5_000_000
    assert found["rwnd.bulk.limited_percent"] == pytest.approx(100 * 400 / 2000)
    # From one second on, 800 ms were spent, and the window was the limit in 300 of them.
    later = metrics.compute(HandmadeRun(scenario({"bulk": TCP}, duration_s=2, warmup_s=1), {"flows": rows}))
    assert later["rwnd.bulk.limited_percent"] == pytest.approx(100 * 300 / 800)
    idle = metrics.compute(HandmadeRun(scenario({"bulk": TCP}, duration_s=2), {"flows": _samples("bulk/1", [0, 0])}))
    assert "rwnd.bulk.limited_percent" not in idle


def test_download_times() -> None:
    times = [1000, 2000, 3000, None]
    rows = [
        {"traffic": "web", "flow": f"web/{n}", "started_ns": n * SECOND, "bytes": 1,
         "finished_ns": None if ms is None else n * SECOND + ms * MS}
        for n, ms in enumerate(times)
    ]  # fmt: skip
    found = metrics.compute(HandmadeRun(scenario({"web": WEB}), {"transfers": rows}))
    assert (found["transfer.web.mean_s"], found["transfer.web.max_s"], found["transfer.web.unfinished"]) == (2, 3, 1)
    assert found["transfer.web.p95_s"] == math.inf


def _round_trip(t_ns: int, ms: int, half: str = "receiver", method: str = "acknowledgement") -> dict[str, object]:
    return {"t_ns": t_ns, "flow": "bulk/1", "half": half, "method": method, "rtt_ns": ms * MS}


def test_round_trips_of_a_capture_are_those_to_the_receiver_by_acknowledgements() -> None:
    others = [_round_trip(0, 1, half="sender"), _round_trip(0, 2, method="timestamp"), _round_trip(99 * SECOND, 3)]
    trips = [_round_trip(SECOND, ms) for ms in (40, 10, 30, 20)]
    found = metrics.compute(HandmadeRun(scenario({"bulk": TCP}), {"round_trips": [*others, *trips]}))
    assert (found["round_trip.bulk.p50_ms"], found["round_trip.bulk.max_ms"]) == (25, 40)
    assert found["round_trip.bulk.p95_ms"] == pytest.approx(38.5)
    assert not any(name.startswith("round_trip") for name in metrics.compute(HandmadeRun(scenario({"bulk": TCP}))))


def test_large_runs_fit_into_the_numbers() -> None:
    many, gb = 5000, 10**9
    times = [n * 10 * MS for n in range(many)]
    transfers: Rows = [
        {"traffic": "web", "flow": f"web/{n}", "started_ns": t_ns, "finished_ns": t_ns + 3 * SECOND, "bytes": gb}
        for n, t_ns in enumerate(times)
    ]
    flows: Rows = [
        {"t_ns": t_ns, "flow": "bulk/1", "cwnd_bytes": 4 * gb, "delivered_bytes": n * gb, "retransmits": n,
         "notsent_bytes": 2 * gb}
        for n, t_ns in enumerate(times)
    ]  # fmt: skip
    queues: Rows = [
        {"t_ns": t_ns, "packets": 10**7, "bytes": 10 * gb, "sent_bytes": n * 12_500_000} for n, t_ns in enumerate(times)
    ]
    traffic = {"bulk": TCP, "ping": PING, "web": WEB}
    run = HandmadeRun(
        scenario(traffic, duration_s=50, rate=[(0, 10 * gb)]),
        {"probes": probes([3000.0] * many, interval_ms=10), "flows": flows, "queues": queues, "transfers": transfers},
    )
    found = metrics.compute(run)
    assert (found["transfer.web.mean_s"], found["transfer.web.p95_s"], found["transfer.web.max_s"]) == (3, 3, 3)
    assert (found["rtt.mean_ms"], found["rtt.p95_ms"], found["rtt.sent"]) == (3000, 3000, many)
    assert found["cwnd.bulk.mean_packets"] == pytest.approx(4 * gb / MSS)
    assert (found["queue.r1>h2.mean_packets"], found["queue.r1>h2.p95_packets"]) == (10**7, 10**7)
    assert found["utilization.r1>h2"] == 1
    assert found["retransmits.total"] == many - 1
    # 2 GB wait while 1 GB is sent every 10 ms.
    assert found["unsent.bulk_ms"] == pytest.approx(20)
    assert found["goodput.bulk_mbit"] == pytest.approx((many - 1) * gb * 8 / 50 / 1e6)


def test_every_computed_metric_is_defined_and_every_definition_is_computed() -> None:
    run = _run_with_everything()
    computed = set(metrics.compute(run))
    assert {re.sub(r"\.p\d+_", ".p<N>_", name) for name in computed} <= set(metrics.names(run.scenario))
    idle = scenario({"t.up": TCP | {"start_ns": SECOND, "stop_ns": 2 * SECOND}, "t.ping": PING}, duration_s=3)
    computed |= set(metrics.compute(HandmadeRun(idle, {"probes": probes([10])})))
    for definition in definitions():
        if definition.name.startswith("live."):
            continue  # tests/interop/test_live_runs.py has a live measurement
        assert any(definition.fits(name) for name in computed), definition.name


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("rtt.p30_ms", "ms"),
        ("queue.r1>h2.max_packets", "packets"),
        ("goodput.jain", ""),
        ("goodput.a.b_mbit", "Mbit/s"),
    ],
)
def test_a_name_leads_to_its_definition(name: str, unit: str) -> None:
    found = metrics.definition(name)
    assert found is not None
    assert found.unit == unit


@pytest.mark.parametrize("name", ["rtt.p101_ms", "rtt.mean", "queue..max_packets", "queue.r1>h2.max_packets.sem"])
def test_a_name_that_stands_for_nothing_has_no_definition(name: str) -> None:
    assert metrics.definition(name) is None


def test_one_metric_agrees_with_all_metrics() -> None:
    run = _run_with_everything()
    for name, value in metrics.compute(run).items():
        assert float(metrics.metric(run, name)) == value


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("rtt.mean", "rtt.mean_ms"),
        ("queue.r1>h9.max_packets", "queue.r1>h2.max_packets"),
        ("goodput.bulk", "goodput.bulk_mbit"),
    ],
)
def test_an_unknown_name_is_answered_with_close_ones(name: str, close: str) -> None:
    with pytest.raises(metrics.UnknownMetricError, match=re.escape(close)):
        metrics.metric(_run_with_everything(), name)


def test_repetitions_of_a_point() -> None:
    runs = [HandmadeRun(scenario({"ping": PING}), {"probes": probes([rtt])}) for rtt in (10.0, 12.0, 14.0, None)]
    summary = metrics.aggregate([metrics.compute(run) for run in runs])
    assert (summary["rtt.mean_ms"].mean, summary["rtt.mean_ms"].n) == (12, 3)
    assert summary["rtt.p50_ms"].censored
    assert summary["rtt.p50_ms"].n == 4


def test_frame_has_null_where_a_value_is_censored() -> None:
    run = HandmadeRun(scenario({"ping": PING}), {"probes": probes([10, None])})
    frame = metrics.frame([run])
    assert frame.filter(metric="rtt.p95_ms").row(0, named=True) == {
        "run": "handmade", "seed": 1, "metric": "rtt.p95_ms", "value": None, "censored": True
    }  # fmt: skip
    assert frame.filter(metric="rtt.mean_ms")["value"].to_list() == [10.0]


def test_a_query_reads_columns_that_exist_and_the_tables_of_its_metrics() -> None:
    for query in queries():
        assert all(set(columns) <= set(_core.TABLES[table]) for table, columns in query.reads.items())
        for metric in query.metrics:
            assert set(metric.tables) - {"run.json"} <= set(query.reads), metric.name
            assert bool(metric.percentiles) == ("<N>" in metric.name), metric.name


def test_every_key_metric_has_a_heading_of_its_own() -> None:
    names = key_metrics(_run_with_everything().scenario)
    assert len(names) > 10
    assert [name for name in names if heading(name) == name] == []


def test_describe_tells_name_unit_meaning_and_source_of_every_metric() -> None:
    table = metrics.describe()
    assert table.height == len(definitions()) == table["name"].n_unique()
    assert table.filter(pl.col("meaning") == "").is_empty()
    assert table.filter(pl.col("source") == "").is_empty()


def test_the_path_between_two_hosts_and_back() -> None:
    network = scenario({})
    assert list(ports(network)) == ["h1>r1", "r1>h1", "r1>h2", "h2>r1"]
    assert [port.name for port in path(network, "h1", "h2")] == ["h1>r1", "r1>h2"]
    assert [port.name for port in path(network, "h2", "h1")] == ["h2>r1", "r1>h1"]


def _run_with_everything() -> HandmadeRun:
    queues = [{"t_ns": t * SECOND, "layer": layer, "packets": 1, "bytes": 1500, "sent_bytes": t * 1500}
              for t in (0, 1) for layer in ("stacked", "qdisc", "ring")]  # fmt: skip
    queues[-1] |= {"sent_packets": 1, "airtime_ns": MS, "transmissions": 1}
    traffic = {
        "bulk": TCP, "newcomer": TCP | {"start_ns": SECOND // 2}, "ping": PING, "web": WEB, "udp": UDP, "call": VOIP,
        "game": GAME, "video": VIDEO, "irtt": IRTT, "test": NETALYZR,
    }  # fmt: skip
    two_epochs = [
        row | {"state": "recovery" if n % 3 == 2 else "open"}
        for n, row in enumerate(_samples("newcomer/1", [0] * 7, 100))
    ]
    return HandmadeRun(
        {**scenario(traffic, duration_s=1), "wifi": [{"stations": [{"link": 1}]}]},
        {
            "probes": [
                *probes([10, 20]),
                {"probe": "irtt", "rtt_ns": MS},
                {"probe": "call/1", "owd_up_ns": MS},
                {"probe": "game/1", "owd_up_ns": MS},
            ],
            "flows": _samples("bulk/1", [0, 1000], cwnd_bytes=[MSS, MSS], busy_ns=[0, SECOND])
            + _samples("udp/1", [0, 1000], lost=[0, 1])
            + two_epochs,
            "queues": queues,
            "drops": [{"t_ns": 0, "reason": "overlimit"}],
            "transfers": [
                {"traffic": "web", "flow": "web/1", "started_ns": 0, "finished_ns": SECOND, "bytes": 9},
                {"traffic": "video", "flow": "video/1", "started_ns": 0, "finished_ns": MS, "bytes": 100_000},
            ],
            "sojourns": [{"t_ns": 0, "sojourn_ns": MS, "packets": 3}],
            "estimates": estimates("test"),
            "round_trips": [_round_trip(0, 20)],
        },
    )


def test_a_load_test_is_measured_under_its_load_and_its_idle_probes_are_a_row_of_their_own() -> None:
    """A test of 10 s with probes all the time and 1 MB from 2 to 8 s; the warm-up, if it is longer, still counts."""
    flow = TCP | {"start_ns": 2 * SECOND, "stop_ns": 8 * SECOND}
    rtts_ms: list[float | None] = [40 if 20 <= n <= 80 else 10 for n in range(100)]
    rows = {
        "probes": probes([*rtts_ms[:90], None, *rtts_ms[91:]]),
        "flows": _samples("t.up/1", [0, 0, 0, 250_000, 500_000, 750_000] + [1_000_000] * 5, 1000),
    }
    found = metrics.compute(HandmadeRun(scenario({"t.up": flow, "ping": PING}), rows))
    assert found["goodput.total_mbit"] == pytest.approx(8 / 6)
    assert (found["rtt.p5_ms"], found["rtt.max_ms"], found["rtt.sent"]) == (40, 40, 61)
    assert (found["idle.p50_ms"], found["idle.max_ms"], found["idle.sent"], found["idle.lost"]) == (10, 10, 39, 1)
    warm = metrics.compute(HandmadeRun(scenario({"t.up": flow, "ping": PING}, warmup_s=4), rows))
    assert (warm["rtt.sent"], warm["idle.sent"]) == (41, 39)
    slow = [{**row, "rtt_ns": 500 * MS} if row["seq"] in range(76, 85) else row for row in rows["probes"]]
    draining = metrics.compute(HandmadeRun(scenario({"t.up": flow, "ping": PING}), {**rows, "probes": slow}))
    assert (draining["rtt.max_ms"], draining["idle.max_ms"], draining["idle.sent"]) == (500, 10, 39 - 5)
    plain = metrics.compute(HandmadeRun(scenario({"up": flow, "ping": PING}), rows))
    assert (plain["rtt.sent"], "idle.sent" in plain) == (100, False)
