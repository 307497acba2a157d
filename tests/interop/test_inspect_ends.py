"""Captures near the receiver, near the sender and between them, of any addresses and clocks of timestamps."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from captures import ACK, FIN, MS, SYN, Packet, growing, pcap, pings, tcp

from bufferscope.analysis.explanation import explain_run
from bufferscope.analysis.explanation.statement import Cause
from bufferscope.base.errors import InputError
from bufferscope.interop.inspection.connections import Connection, connections
from bufferscope.interop.inspection.inspecting import Inspection, inspect

ADDED_MS = 200
"""A queue that grows during the first half of the segments, so that the median of all is its end."""
PLACES = {
    "sender": (40.0, 0.03),
    "receiver": (0.03, 40.0),
    "both": (15.0, 25.0),
}
"""By the half that is long, the round trips to the sender and to the receiver, in ms."""


def _inspected(tmp_path: Path, packets: list[Packet], name: str = "home") -> tuple[Inspection, Connection]:
    file = tmp_path / f"{name}.pcap"
    file.write_bytes(pcap(packets))
    found = inspect([file], tmp_path / "results")
    return found, max(connections(found.run, found.summary), key=lambda each: each.facts["delivered_kb"] or 0)


@pytest.mark.parametrize("close", [False, True])
@pytest.mark.parametrize("handshake", [True, False])
def test_near_the_receiver_the_table_the_metrics_and_the_explanation_agree(
    tmp_path: Path, *, close: bool, handshake: bool
) -> None:
    packets = growing(
        800, to_sender_ns=40 * MS, to_receiver_ns=MS // 30, added_ns=ADDED_MS * MS, close=close, handshake=handshake
    )
    found, flow = _inspected(tmp_path, packets)
    assert flow.round_trips
    assert (flow.round_trips.half, flow.round_trips.method) == ("sender", "timestamp")
    # Without the handshake, the first answer comes back when the queue has already grown.
    assert flow.facts["rtt_min_ms"] == pytest.approx(40 if handshake else 69.6, abs=1.3)
    assert flow.facts["rtt_p95_ms"] == pytest.approx(40 + ADDED_MS, abs=1.3)
    metrics = found.run.metrics
    assert metrics["round_trip.tcp.p50_ms"] == pytest.approx(flow.facts["rtt_median_ms"])
    assert metrics["round_trip.tcp.p95_ms"] == pytest.approx(flow.facts["rtt_p95_ms"])
    explanation = explain_run(found.run)
    assert explanation.cause is Cause.QUEUE
    (verdict,) = explanation.of("verdict")
    median, least = flow.facts["rtt_median_ms"], flow.facts["rtt_min_ms"]
    assert median is not None
    assert least is not None
    assert verdict.numbers["delay_ms"] == pytest.approx(median - least)
    assert "seen from the receiver" in explanation.of("where")[0].sentence
    # Nearly nothing is in flight behind the place: what is seen there says nothing about the sender.
    assert flow.facts["inflight_max_kb"] is None
    assert found.run.flows["cwnd_bytes"].null_count() == found.run.flows.height


@pytest.mark.parametrize("half", PLACES)
def test_wherever_the_capture_was_made_the_path_is_the_same(tmp_path: Path, half: str) -> None:
    to_sender, to_receiver = PLACES[half]
    packets = growing(600, to_sender_ns=int(to_sender * MS), to_receiver_ns=int(to_receiver * MS), added_ns=0)
    found, flow = _inspected(tmp_path, packets)
    assert flow.round_trips
    assert flow.round_trips.half == half
    # Data leaves every 1.2 ms, so that an answer may wait for that long until it comes back with data.
    for fact in ("rtt_min_ms", "rtt_median_ms", "rtt_p95_ms"):
        assert flow.facts[fact] == pytest.approx(40, abs=1.3), fact
    assert found.run.metrics["round_trip.tcp.p95_ms"] == pytest.approx(flow.facts["rtt_p95_ms"])
    last = found.run.flows.sort("t_ns").tail(1)
    assert last["min_rtt_ns"][0] / MS == pytest.approx(40, abs=1.3)
    assert last["srtt_ns"][0] / MS == pytest.approx(40, abs=1.3)
    assert explain_run(found.run).cause is not Cause.QUEUE


@pytest.mark.parametrize("half", PLACES)
@pytest.mark.parametrize("tick_ms", [1, 4, 10, 500])
def test_a_timestamp_clock_slower_than_the_path_changes_nothing(tmp_path: Path, half: str, tick_ms: int) -> None:
    to_sender, to_receiver = (each / 5 for each in PLACES[half])
    packets = growing(
        900,
        to_sender_ns=int(to_sender * MS),
        to_receiver_ns=int(to_receiver * MS),
        added_ns=0,
        tick_ns=tick_ms * MS,
    )
    found, flow = _inspected(tmp_path, packets)
    assert flow.facts["rtt_min_ms"] == pytest.approx(8, abs=1.3)
    assert flow.facts["rtt_p95_ms"] == pytest.approx(8, abs=2.5)
    least = 0.99 * 1e6 * min(to_sender, to_receiver)
    echoes = found.run.round_trips.filter(method="timestamp")["rtt_ns"]
    assert all(rtt >= least for rtt in echoes)
    assert explain_run(found.run).cause is not Cause.QUEUE


PAIRS = {
    "v4": ("192.0.2.1", "203.0.113.5"),
    "v6": ("2001:db8::1", "2001:db8:1::2"),
    "v4-mapped": ("::ffff:192.0.2.1", "::ffff:203.0.113.5"),
    "link-local": ("fe80::1%eth0", "fe80::2%eth0"),
    "loopback v4": ("127.0.0.1", "127.0.0.1"),
    "loopback v6": ("::1", "::1"),
    "hairpin": ("192.0.2.1", "192.0.2.1"),
}


@pytest.mark.parametrize("ends", PAIRS.values(), ids=PAIRS)
def test_the_ends_may_have_any_addresses(cli: Callable[..., Any], tmp_path: Path, ends: tuple[str, str]) -> None:
    transfer = growing(100, to_sender_ns=MS // 30, to_receiver_ns=40 * MS, added_ns=0, ends=ends)
    asked = pings(10, 20 * MS, 30 * MS, ends=ends)
    (tmp_path / "ends.pcap").write_bytes(pcap(sorted([*transfer, *asked], key=lambda packet: packet.t_ns)))
    # Two pages suffice: one of IPv6, and one of ends with the same address.
    page = ["--report", "page"] if ends in (PAIRS["v6"], PAIRS["loopback v6"]) else ["--no-report"]
    answer = cli("inspect", "ends.pcap", "--host", ends[0], *page, "--json")
    assert answer.status == 0, answer.err
    found = json.loads(answer.out)
    (flow,) = found["connections"]
    bare = ends[1].partition("%")[0]
    assert flow["from"] == (f"[{bare}]:443" if ":" in bare else f"{bare}:443")
    assert flow["delivered_kb"] == pytest.approx(144.8)
    assert flow["rtt_median_ms"] == pytest.approx(40, abs=0.1)
    (ping,) = found["capture"]["pings"]
    assert (ping["from"], ping["to"]) == tuple(end.partition("%")[0] for end in ends)
    assert found["runs"][0]["metrics"]["rtt.p50_ms"] == pytest.approx(30)
    (tmp_path / "later.pcap").write_bytes(pcap(transfer))
    for command in (
        ["inspect", "later.pcap", "--no-report"],
        ["show", "results/ends"],
        ["explain", "results/ends"],
        ["compare", "results/ends", "results/later", "--no-report"],
        ["export", "results/ends", "--out", "csv"],
        ["export", "results/ends", "--format", "flent", "--out", "flent"],
    ):
        answer = cli(*command)
        assert answer.status == 0, (command, answer.err)
    # The packets are in the capture itself.
    assert cli("export", "results/ends", "--format", "pcapng", "--out", "packets").status == 2


def test_a_capture_of_many_addresses_has_two_ends(tmp_path: Path) -> None:
    packets = [each for n in range(10) for each in pings(2, 20 * MS, MS, ends=(f"2001:db8::{n:x}", "2001:db8:1::2"))]
    file = tmp_path / "many.pcap"
    file.write_bytes(pcap(sorted(packets, key=lambda packet: packet.t_ns)))
    nodes = inspect([file], tmp_path / "results").run.scenario["nodes"]
    assert len({node["name"] for node in nodes}) == len(nodes) == 12


@pytest.mark.parametrize("content", [b"no capture", pcap([])])
def test_what_is_refused_leaves_no_directory(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "empty.pcap").write_bytes(content)
    with pytest.raises(InputError):
        inspect([tmp_path / "empty.pcap"], tmp_path / "some" / "results")
    assert [each.name for each in tmp_path.iterdir()] == ["empty.pcap"]
    (tmp_path / "results").mkdir()
    with pytest.raises(InputError):
        inspect([tmp_path / "empty.pcap"], tmp_path / "results")
    assert list((tmp_path / "results").iterdir()) == []


def _stalled(probe: Callable[[int], Packet]) -> list[Packet]:
    """A transfer whose receiver closes its window for 8 of 9 seconds."""
    up, down = ("192.0.2.1", 50_000, "203.0.113.5", 443), ("203.0.113.5", 443, "192.0.2.1", 50_000)
    packets = [
        tcp(0, up, 99, 0, SYN),
        tcp(20 * MS, down, 999, 100, SYN | ACK),
        tcp(20 * MS + 1, up, 100, 1000, ACK),
        *(tcp(30 * MS + n * MS, up, 100 + 1000 * n, 1000, ACK, 1000) for n in range(10)),
        *(tcp(50 * MS + n * MS, down, 1000, 1100 + 1000 * n, ACK, window=9000 - 1000 * n) for n in range(10)),
    ]
    for second in (1, 2, 4, 7):
        packets += [probe(second * 1000 * MS), tcp((second * 1000 + 20) * MS, down, 1000, 10_100, ACK, window=0)]
    return [
        *packets,
        tcp(8100 * MS, down, 1000, 10_100, ACK, window=65_535),
        *(tcp(8101 * MS + n * MS, up, 10_100 + 1000 * n, 1000, ACK, 1000) for n in range(500)),
        *(tcp(8121 * MS + n * MS, down, 1000, 11_100 + 1000 * n, ACK) for n in range(500)),
    ]


@pytest.mark.parametrize("payload_bytes", [0, 1])
def test_a_closed_window_is_the_cause_and_its_probes_are_no_retransmissions(tmp_path: Path, payload_bytes: int) -> None:
    up = ("192.0.2.1", 50_000, "203.0.113.5", 443)
    seq = 10_100 if payload_bytes else 10_099
    packets = _stalled(lambda t_ns: tcp(t_ns, up, seq, 1000, ACK, payload_bytes))
    found, flow = _inspected(tmp_path, sorted(packets, key=lambda packet: packet.t_ns))
    assert flow.retransmissions == {}
    assert found.summary["flows"][0]["window_probes"] == 4
    assert found.run.metrics["retransmits.total"] == 0
    explanation = explain_run(found.run)
    assert explanation.cause is Cause.WINDOW
    assert explanation.of("verdict")[0].numbers["share"] == pytest.approx(8.1 / 8.6, abs=0.03)


def test_the_page_of_a_capture_without_a_known_window_is_made(cli: Callable[..., Any], tmp_path: Path) -> None:
    packets = growing(40, to_sender_ns=40 * MS, to_receiver_ns=MS // 30, added_ns=0, handshake=False)
    (tmp_path / "short.pcap").write_bytes(pcap(packets))
    answer = cli("inspect", "short.pcap")
    assert answer.status == 0, answer.err
    page = (tmp_path / "report" / "short" / "index.html").read_text()
    text = re.sub(r"\s+", " ", re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", page, flags=re.S))
    order = [
        text.index(each) for each in ("Cannot tell: ", "https from 203.0.113.5", "bufferscope explain results/short")
    ]
    assert order == sorted(order)


def test_two_round_trips_of_a_handshake_and_a_close_are_no_queue(tmp_path: Path) -> None:
    """A receiver without timestamps sees the path in the handshake and the close, and a close is answered late."""
    ends = ("203.0.113.5", 443, "192.0.2.1", 50_000)
    up = (*ends[2:], *ends[:2])
    packets = [
        tcp(0, up, 99, 0, SYN),
        tcp(20 * MS, ends, 999, 100, SYN | ACK),
        tcp(20 * MS, up, 100, 1000, ACK),
    ]
    for number in range(200):
        packets.append(tcp((40 + number) * MS, ends, 1000 + 1000 * number, 100, ACK, 1000))
        packets.append(tcp((40 + number) * MS + 10_000, up, 100, 2000 + 1000 * number, ACK))
    packets += [tcp(300 * MS, up, 100, 201_000, FIN | ACK), tcp(520 * MS, ends, 201_000, 101, ACK)]
    found, flow = _inspected(tmp_path, packets)
    assert flow.round_trips
    assert (flow.round_trips.count, flow.round_trips.source) == (2, "sender, only 2")
    explanation = explain_run(found.run)
    assert explanation.cause is Cause.UNKNOWN
    assert "too few round trips (2)" in explanation.verdict


def _ticking(packets: list[Packet], tick_ns: int) -> list[Packet]:
    return [Packet(packet.t_ns // tick_ns * tick_ns, packet.data) for packet in packets]


@pytest.mark.parametrize(
    ("tick_ns", "warning"),
    [(1000, None), (10 * MS, "the capture's clock ticks every 10 ms"), (10_000 * MS, "all round trips are 0")],
)
def test_a_clock_that_is_too_coarse_for_the_round_trips_is_reported(
    tmp_path: Path, tick_ns: int, warning: str | None
) -> None:
    packets = growing(400, to_sender_ns=0, to_receiver_ns=9 * MS, added_ns=30 * MS, handshake=False)
    found, _ = _inspected(tmp_path, _ticking(packets, tick_ns))
    told = [each for each in found.run.warnings if "clock" in each and "one vantage point" not in each]
    assert [each.startswith(warning or "") for each in told] == ([True] if warning else [])
