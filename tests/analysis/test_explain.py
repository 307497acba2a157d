"""Explanations of runs: of records made by hand, of simulated runs, and on the command line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from handmade import MS, MSS, PING, SECOND, TCP, HandmadeRun, probes, scenario
from homes import HOME, simulated, told
from laboratory import Answer

import bufferscope as bs
from bufferscope.analysis.explanation import Cause, Explanation, explain_run
from bufferscope.analysis.explanation.cures import cures
from bufferscope.analysis.explanation.effects import round_trips
from bufferscope.analysis.explanation.port_facts import does_nothing
from bufferscope.analysis.explanation.standing import episodes, spans
from bufferscope.running.stepping import Simulation

Cli = Callable[..., Answer]


def test_a_deep_tail_drop_queue_is_named_with_its_port_and_its_flow() -> None:
    found = explain_run(simulated())
    assert (found.cause, found.port, found.layer, found.flow) == (Cause.QUEUE, "r1>h2", "qdisc", "bulk/1")
    assert "pfifo drops nothing until it is full" in found.verdict


def test_half_of_the_delay_that_pings_see_more_is_that_of_the_queue() -> None:
    run = simulated()
    (where,) = [each for each in explain_run(run).of("where") if "r1>h2" in each.sentence]
    added_ms = run.metrics["rtt.mean_ms"] - 40
    assert where.numbers["mean_ms"] == pytest.approx(added_ms, rel=0.1)
    assert float(where.numbers["share"]) > 0.95


def test_the_limit_that_one_flow_needs_is_the_bandwidth_delay_product() -> None:
    (limit,) = explain_run(simulated()).of("limit")
    # 10 Mbit/s times 41.5 ms (40 ms, a full packet and its acknowledgement on two wires) over 1514 bytes
    assert limit.numbers == {"needed_packets": 35, "limit_packets": 200}


def test_a_ring_without_byte_queue_limits_is_named_below_a_queue_manager() -> None:
    ring = {"size": "256p", "bql": False}
    found = explain_run(simulated(link__wan__forward__ring=ring, link__wan__queue={"qdisc": "fq_codel"}))
    assert (found.cause, found.port, found.layer) == (Cause.RING, "r1>h2", "ring")
    assert "no byte queue limits" in found.verdict


def test_a_shaper_s_own_rate_is_measured_and_not_that_of_its_wire() -> None:
    tbf = {"qdisc": "tbf", "rate": "4mbit", "burst": "3kb", "limit": "200kb"}
    (verdict,) = explain_run(simulated(link__wan__forward__queue=tbf)).of("verdict")
    assert verdict.numbers["service_bps"] == pytest.approx(4e6, rel=0.03)
    assert "shaper" in verdict.sentence


def test_a_managed_queue_is_nothing_wrong() -> None:
    found = explain_run(simulated(link__wan__queue={"qdisc": "fq_codel"}, traffic__bulk__congestion="cubic"))
    assert found.cause is Cause.NONE, found.verdict


@pytest.mark.parametrize(
    ("changes", "limit"),
    [
        ({"host.h2.tcp.rmem_max": "24kb", "host.h2.tcp.rmem_default": "24kb"}, "receiver's window"),
        ({"host.h1.tcp.wmem_max": "24kb", "host.h1.tcp.wmem_default": "16kb"}, "send buffer"),
        ({"traffic.bulk.congestion": "window", "traffic.bulk.window": "8p"}, "fixed congestion window"),
    ],
)
def test_a_window_smaller_than_the_path_is_named_with_the_end_that_it_belongs_to(changes: Any, limit: str) -> None:
    text = HOME + '[[host]]\nname = "h1"\n[[host]]\nname = "h2"\n'
    found = explain_run(Simulation(text, changes).finish())
    assert found.cause is Cause.WINDOW, found.verdict
    assert [each.numbers["limit"] for each in found.of("sender")] == [limit]


def test_an_application_that_writes_less_than_the_path_takes_is_named() -> None:
    assert explain_run(simulated(traffic__bulk__rate="3mbit")).cause is Cause.APPLICATION


def test_losses_on_a_wire_are_told_from_those_of_a_queue() -> None:
    found = explain_run(simulated(link__lan__forward__wire={"loss": 0.02}))
    assert (found.cause, found.port) == (Cause.LOSS, "h1>r1")
    found = explain_run(simulated(link__wan__queue={"qdisc": "pfifo", "limit": "2p"}, traffic__bulk__congestion="reno"))
    assert (found.cause, found.port) == (Cause.SHALLOW, "r1>h2")


def test_light_traffic_is_nothing_wrong() -> None:
    text = HOME.replace('kind = "tcp"', 'kind = "web"\ninterval = "3s"\nbytes = "20kb"')
    assert explain_run(Simulation(text).finish()).cause is Cause.NONE


def test_flow_queueing_keeps_a_flood_s_queue_from_others() -> None:
    """The datagrams wait for themselves; the pings don't wait, so no delay of others is claimed."""
    text = HOME.replace('kind = "tcp"', 'kind = "udp"\nrate = "20mbit"')
    run = Simulation(text, {"link.wan.queue": {"qdisc": "sfq"}}).finish()
    assert explain_run(run).cause is Cause.NONE


def test_what_was_not_recorded_is_not_told() -> None:
    found = explain_run(Simulation(HOME, ['record=["probes", "flows", "capacity"]']).finish())
    assert found.cause is Cause.UNKNOWN
    assert "no table queues" in found.verdict
    assert "queues" in found.of("unknown")[-1].sentence


def test_a_changed_run_is_not_explained() -> None:
    simulation = Simulation(HOME)
    simulation.advance(until=5)
    simulation.set("link.wan.rate=2mbit")
    found = explain_run(simulation.finish())
    assert found.cause is Cause.UNKNOWN
    assert "was changed while it ran" in found.verdict


def test_a_delay_that_no_queue_explains_is_not_explained() -> None:
    """Pings that take 110 ms on a path of 20 ms, beside queues that are always empty."""
    rows = {
        "probes": probes([110.0] * 20),
        "queues": [{"t_ns": t * 10 * MS, "packets": 0, "bytes": 0} for t in range(201)],
    }
    found = explain_run(HandmadeRun(scenario({"ping": PING}, duration_s=2), rows=rows))
    assert found.cause is Cause.UNKNOWN
    assert "no queue explains it" in found.verdict


def flow_rows(inflight: int) -> list[dict[str, Any]]:
    """A flow with 10 Mbit/s of payload and so much in flight, sampled every 10 ms for two seconds."""
    return [
        {"t_ns": t * 10 * MS, "flow": "bulk/1", "cwnd_bytes": inflight, "rwnd_bytes": 10**7, "ssthresh_bytes": MSS,
         "inflight_bytes": inflight, "notsent_bytes": 1, "delivered_bytes": t * 12_500, "busy_ns": t * 10 * MS,
         "srtt_ns": 100 * MS, "state": "open"}
        for t in range(201)
    ]  # fmt: skip


def standing_run(inflight: int) -> HandmadeRun:
    """A queue of 75 packets at 10 Mbit/s, which is 90.8 ms, and a flow."""
    queue = [
        {"t_ns": t * 10 * MS, "packets": 75, "bytes": 75 * 1514, "sent_packets": t * 8, "sent_bytes": t * 12_500}
        for t in range(201)
    ]
    rows = {"queues": queue, "flows": flow_rows(inflight)}
    return HandmadeRun(scenario({"bulk": TCP}, duration_s=2), rows=rows)


def test_whose_packets_stand_is_told_only_if_the_flows_have_that_much_in_flight() -> None:
    # The path of 21.3 ms holds 26.6 kB at this goodput; 75 packets are 113.6 kB.
    assert "bulk/1" in told(standing_run(140_000), "who")
    assert "Cannot tell whose packets" in told(standing_run(40_000), "who")
    assert explain_run(standing_run(40_000)).flow is None


def test_a_queue_stands_if_it_is_above_five_milliseconds_for_a_hundred() -> None:
    import numpy as np

    times = np.arange(0, 1, 0.01)
    delays = np.where((times >= 0.295) & (times < 0.695), 0.02, 0.0)
    onset, share = episodes(times, delays)
    assert onset == pytest.approx(0.3)
    assert spans(times, delays) == [pytest.approx((0.3, 0.7))]
    assert share == pytest.approx(0.4 / 0.99, rel=0.05)
    assert episodes(times, np.where(np.arange(100) % 5 == 0, 0.0, 0.02)) == (None, 0.0), "it drains every 50 ms"


def test_a_page_of_a_hundred_kilobytes_takes_four_round_trips() -> None:
    """The handshake, then 10, 20 and 40 segments."""
    assert round_trips(70) == 4
    assert round_trips(71) == 5


def test_a_shaper_does_nothing_about_its_queue_unless_what_is_inside_does() -> None:
    assert does_nothing({"qdisc": "htb", "classes": [{"inner": {"qdisc": "pfifo"}}]})
    assert not does_nothing({"qdisc": "htb", "classes": [{"inner": {"qdisc": "pfifo"}}, {"inner": {"qdisc": "pie"}}]})


@pytest.fixture
def stored(cli: Cli, tmp_path: Path) -> Path:
    (tmp_path / "home.toml").write_text(HOME)
    assert cli("run", "home.toml", "--quiet").status == 0
    return tmp_path / "results" / "home"


def test_cures_are_simulated_and_compared_with_the_run_as_it_was(stored: Path) -> None:
    (run,) = bs.load(stored).runs
    found = {str(each.numbers.get("cure")): each for each in cures(run)}
    assert {"fq_codel in r1>h2", "a limit of 35 packets in r1>h2"} <= set(found)
    numbers = found["fq_codel in r1>h2"].numbers
    assert numbers["before_rtt_p50_ms"] == pytest.approx(run.metrics["rtt.p50_ms"], rel=0.25)
    assert float(numbers["after_rtt_p50_ms"]) < 50
    assert list(stored.iterdir()) == [run.path], "nothing is stored"


def test_cures_of_another_file_are_not_simulated(stored: Path, tmp_path: Path) -> None:
    (run,) = bs.load(stored).runs
    (tmp_path / "home.toml").write_text(HOME.replace("10mbit", "11mbit"))
    (statement,) = cures(run)
    assert "has changed since the run" in statement.sentence
    (tmp_path / "home.toml").unlink()
    (statement,) = cures(run)
    assert "no longer exists" in statement.sentence


def test_the_command_prints_the_verdict_and_the_figure_of_each_sentence(cli: Cli, stored: Path) -> None:
    answer = cli("explain", str(stored), "--no-cures")
    assert answer.status == 0
    assert "There is a standing queue of" in answer.out.splitlines()[0]
    assert "[queue_length]" in answer.out
    assert "tried on the simulator" not in answer.out


def test_the_document_has_numbers_with_units_in_their_names(cli: Cli, stored: Path) -> None:
    (found,) = json.loads(cli("explain", str(stored), "--no-cures", "--json").out)["explanations"]
    assert (found["cause"], found["port"], found["layer"]) == ("queue", "r1>h2", "qdisc")
    assert {"delay_ms", "port", "layer"} <= set(found["statements"][0]["numbers"])


def test_the_figures_that_show_it_are_drawn(cli: Cli, stored: Path, tmp_path: Path) -> None:
    assert cli("explain", str(stored), "--no-cures", "--draw", "shown", "--quiet").status == 0
    assert {path.name for path in tmp_path.glob("shown/*/*")} >= {"queue_length.svg", "rtt.svg", "cwnd.svg"}


def test_a_missing_run_is_wrong_usage(cli: Cli) -> None:
    answer = cli("explain", "nowhere")
    assert answer.status == 2
    assert "nowhere" in answer.err


def test_every_statement_names_a_figure_that_exists() -> None:
    run = simulated()
    found: Explanation = bs.explain(run)
    assert all(each.figure in (None, *bs.figures.NAMES) for each in found.statements)
    assert found.statements[0].anchor("lab") == "lab-queue_length"
    json.dumps(found.document(), allow_nan=False)
    assert SECOND


def test_behind_flow_queueing_only_a_ping_can_show_that_others_wait() -> None:
    """A flood of datagrams fills its own queue in fq_pie; nothing in the records waits beside it."""
    text = HOME.replace('kind = "tcp"', 'kind = "udp"\nrate = "20mbit"').partition('[[traffic]]\nname = "ping"')[0]
    run = Simulation(text, {"link.wan.queue": {"qdisc": "fq_pie"}}).finish()
    assert explain_run(run).cause is Cause.NONE


def observed(inflight: int, srtt_ms: int, rwnd: int = 10**7) -> HandmadeRun:
    """One connection as a capture shows it: 10 Mbit/s, a least round trip of 20 ms, no ports."""
    rows = [row | {"srtt_ns": srtt_ms * MS, "min_rtt_ns": 20 * MS, "rwnd_bytes": rwnd} for row in flow_rows(inflight)]
    known = scenario({"bulk": TCP}, duration_s=2)
    for link in known["links"]:
        for side in ("forward", "reverse"):
            link[side] |= {"rate": None, "delay_ns": 0, "queue": {"qdisc": "unknown"}}
    return HandmadeRun(known, rows={"flows": rows, "capacity": []}, engine="capture")


def test_from_one_end_a_queue_is_told_but_not_which() -> None:
    # 10 Mbit/s times 20 ms are 25 kB.
    found = explain_run(observed(125_000, 100))
    assert (found.cause, found.port, found.flow) == (Cause.QUEUE, None, "bulk/1")
    assert "5 times" in found.verdict
    assert "the queue cannot be located" in found.of("unknown")[0].sentence


def test_from_one_end_a_full_receive_window_is_told() -> None:
    assert explain_run(observed(24_000, 21, rwnd=24_500)).cause is Cause.WINDOW


def test_from_one_end_short_round_trips_tell_nothing() -> None:
    found = explain_run(observed(25_000, 21))
    assert found.cause is Cause.UNKNOWN
    assert found.verdict.startswith("Cannot tell")


def test_the_cures_of_an_observed_run_are_not_simulated() -> None:
    (statement,) = cures(observed(125_000, 100))
    assert "its network is not known" in statement.sentence
