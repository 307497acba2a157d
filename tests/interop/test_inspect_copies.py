"""Captures that have each packet several times, several sections, one direction each, QUIC, and hostile names."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from captures import MS, Packet, download, ip, pcap, pcapng, pings

from bufferscope.interop.inspection.connections import connections
from bufferscope.interop.inspection.inspecting import Inspection, inspect
from bufferscope.interop.inspection.quic import OnlyQuicError

HOSTILE = b"e\x1b[31mth\x9b0\xe2\x80\xae[red]x"
"""An interface's name with escape codes, a change of the direction of writing, and markup."""


def _inspect(tmp_path: Path, *contents: bytes) -> Inspection:
    files = []
    for number, content in enumerate(contents):
        files.append(tmp_path / f"{number}.pcap")
        files[-1].write_bytes(content)
    return inspect(files, tmp_path / "out")


def _without_id(packet: Packet) -> Packet:
    """The same with IP identification 0."""
    return Packet(packet.t_ns, packet.data[:4] + bytes(2) + packet.data[6:])


def _cooked(packet: Packet, *, is_sent: bool) -> Packet:
    return Packet(packet.t_ns, struct.pack(">HHHQH", 4 if is_sent else 0, 1, 6, 0, 0x0800) + packet.data)


@pytest.mark.parametrize("times", [2, 3, 4])
def test_a_mirrored_download_is_as_one_that_was_captured_once(tmp_path: Path, times: int) -> None:
    once = [_without_id(packet) for packet in download(200, rate_bps=10_000_000, rtt_ns=20 * MS, window=30)]
    again = sorted(
        (packet.later(20_000 * copy) for packet in once for copy in range(times)), key=lambda each: each.t_ns
    )
    (tmp_path / "once").mkdir()
    expected = _inspect(tmp_path / "once", pcap(once))
    found = _inspect(tmp_path, pcap(again))
    (seen,) = connections(found.run, found.summary)
    (right,) = connections(expected.run, expected.summary)
    assert (seen.facts["delivered_kb"], seen.retransmissions) == (right.facts["delivered_kb"], {})
    assert seen.facts["rtt_median_ms"] == pytest.approx(right.facts["rtt_median_ms"], rel=0.01)
    assert any(f"{len(once) * (times - 1):,} of" in warning for warning in found.run.warnings)
    assert not any("more than once" in warning for warning in expected.run.warnings)


def test_a_router_captured_on_any_is_two_interfaces(tmp_path: Path) -> None:
    once = [_without_id(packet) for packet in download(100, rate_bps=10_000_000, rtt_ns=20 * MS, window=30)]
    both = [_cooked(packet, is_sent=False) for packet in once]
    both += [_cooked(packet.later(30_000), is_sent=True) for packet in once]
    found = _inspect(tmp_path, pcap(sorted(both, key=lambda each: each.t_ns), link_type=113))
    (seen,) = connections(found.run, found.summary)
    assert seen.retransmissions == {}
    assert [place["interface"] for place in found.summary["places"]] == ["packets received", "packets sent"]


def test_pings_through_a_mirror_are_counted_once(tmp_path: Path) -> None:
    twice = [packet.later(delay) for packet in pings(20, 100 * MS, 30 * MS) for delay in (0, 15_000)]
    found = _inspect(tmp_path, pcap(sorted(twice, key=lambda each: each.t_ns)))
    assert (found.run.probes.height, len(found.summary["pings"])) == (20, 1)
    assert found.run.probes["rtt_ns"].to_list() == [30 * MS] * 20


def test_sections_and_directions_are_put_together(tmp_path: Path) -> None:
    packets = download(200, rate_bps=10_000_000, rtt_ns=20 * MS, window=30)
    halves = pcapng(packets[:150]) + pcapng(packets[150:])
    (tmp_path / "whole").mkdir()
    (right,) = connections(*_of(_inspect(tmp_path / "whole", pcap(packets))))
    (joined,) = connections(*_of(_inspect(tmp_path, halves)))
    assert joined.facts == right.facts
    forth = [packet for packet in packets if packet.data[12:16] == packets[0].data[12:16]]
    back = [packet for packet in packets if packet not in forth]
    apart = _inspect(tmp_path, pcap(forth), pcap(back))
    assert connections(*_of(apart))[0].facts == right.facts
    assert any("one direction each and are joined" in warning for warning in apart.run.warnings)


def _of(found: Inspection) -> tuple[Any, Any]:
    return found.run, found.summary


def _quic(t_ns: int, payload: bytes, *, is_back: bool = False) -> Packet:
    ports = (443, 50_000) if is_back else (50_000, 443)
    ends = ("192.0.2.9", "192.0.2.1") if is_back else ("192.0.2.1", "192.0.2.9")
    return ip(t_ns, *ends, 17, struct.pack(">HHHH", *ports, 8 + len(payload), t_ns & 0xFFFF) + payload)


def _quic_capture() -> bytes:
    packets = [_quic(0, b"\xc0\0\0\0\x01\x02ab\x03cde" + bytes(100))]
    for number in range(400):
        spin = bytes([0x40 | (number // 40 % 2) << 5])
        packets.append(_quic((50 + number) * MS, spin + bytes(99)))
        packets.append(_quic((80 + number) * MS + 7, spin + bytes(999), is_back=True))
    return pcap(sorted(packets, key=lambda each: each.t_ns))


def test_a_capture_of_quic_alone_is_answered(cli: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "quic.pcap").write_bytes(_quic_capture())
    answer = cli("inspect", "quic.pcap")
    assert answer.status == 0, answer.err
    for part in ("192.0.2.1:50000", "192.0.2.9:443", "636465", "40", "encrypted and can't be seen", "No run is stored"):
        assert part in answer.out, answer.out
    document = json.loads(cli("inspect", "quic.pcap", "--json").out)
    assert document["capture"]["quic"][0]["spin"]["median_ns"] == 40 * MS
    with pytest.raises(OnlyQuicError, match="round trips by the spin bit: least 40 ms"):
        inspect([tmp_path / "quic.pcap"], tmp_path / "out")


def test_a_tunnel_that_is_not_read_is_named(cli: Callable[..., Any], tmp_path: Path) -> None:
    datagram = struct.pack(">HHHH", 51820, 51820, 72, 0) + b"\x04\0\0\0" + bytes(60)
    (tmp_path / "wg.pcap").write_bytes(pcap([ip(0, "192.0.2.1", "192.0.2.9", 17, datagram)]))
    answer = cli("inspect", "wg.pcap")
    assert (answer.status, answer.out) == (2, "")
    assert "WireGuard (encrypted)" in answer.err


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_no_name_in_a_capture_controls_the_terminal(
    cli: Callable[..., Any], tmp_path: Path, arguments: list[str]
) -> None:
    packets = download(20, rate_bps=10_000_000, rtt_ns=20 * MS, window=5)
    file = tmp_path / "a\x1b[2J\u202e.pcapng"
    file.write_bytes(pcapng(packets, interface=HOSTILE, lost=3))
    answer = cli("inspect", file.name, "--no-report", *arguments)
    assert answer.status == 0, answer.err
    for text in (answer.out, answer.err):
        assert text.replace("\n", "").replace("\xa0", "").isprintable(), ascii(text)
    assert "[red]x" in answer.out
