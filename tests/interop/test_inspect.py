"""`bufferscope inspect`: captures made by hand, whose truth follows from how they were made."""

import gzip
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from captures import MS, Packet, download, ip, pcap, pcapng, pings
from laboratory import running

from bufferscope.analysis.explanation import explain
from bufferscope.base.errors import InputError
from bufferscope.interop.inspection.connections import connections
from bufferscope.interop.inspection.inspecting import default_name, inspect

WINDOW, PACKET_BYTES = 60, 1500
DOWNLOAD = download(3000, rate_bps=10_000_000, rtt_ns=20 * MS, window=WINDOW)
"""The window of 60 packets is more than the path holds (17): the RTT is 60 packets at 10 Mbit/s = 72 ms."""


def _document(cli: Callable[..., Any], *arguments: str) -> Any:
    answer = cli("inspect", *arguments, "--json")
    assert answer.status == 0, answer.err
    return json.loads(answer.out)


def test_a_download_is_seen_with_its_delay_its_window_and_its_goodput(tmp_path: Path) -> None:
    file = tmp_path / "server.pcap"
    file.write_bytes(pcap(DOWNLOAD))
    found = inspect([file], tmp_path)
    (flow,) = connections(found.run, found.summary)
    assert (flow.sender, flow.receiver) == ("203.0.113.5:443", "192.0.2.1:50000")
    assert flow.facts["rtt_median_ms"] == pytest.approx(WINDOW * PACKET_BYTES * 8 / 10_000, rel=0.01)
    # The handshake waits for nobody.
    assert flow.facts["rtt_min_ms"] == pytest.approx(20, abs=0.01)
    assert flow.facts["inflight_max_kb"] == pytest.approx(WINDOW * 1.46, rel=0.02)
    assert flow.facts["goodput_mbit"] == pytest.approx(10 * 1460 / 1500, rel=0.02)
    assert flow.facts["delivered_kb"] == pytest.approx(3000 * 1.46)
    assert flow.retransmissions == {}
    assert found.run.engine == "capture"
    assert found.run.meta["mss_bytes"] == 1460
    assert found.run.meta["started"].startswith("2023-11-14T22:13:20")


def test_a_capture_cut_to_96_bytes_says_the_same(tmp_path: Path) -> None:
    runs = []
    for snap_bytes in (262_144, 96):
        file = tmp_path / f"snap-{snap_bytes}.pcap"
        file.write_bytes(pcap(DOWNLOAD, snap_bytes=snap_bytes))
        found = inspect([file], tmp_path)
        runs.append([each.facts for each in connections(found.run, found.summary)])
        assert found.summary["counts"]["cut"] == (3000 if snap_bytes == 96 else 0)
    assert runs[0] == runs[1]


def test_a_ping_becomes_probes_with_its_losses(tmp_path: Path) -> None:
    file = tmp_path / "evening.pcapng"
    file.write_bytes(pcapng(pings(50, 100 * MS, 30 * MS, lost=[7, 20]), lost=3))
    found = inspect([file], tmp_path)
    metrics = found.run.metrics
    assert (metrics["rtt.sent"], metrics["rtt.lost"]) == (50, 2)
    assert metrics["rtt.p50_ms"] == pytest.approx(30)
    assert any("eth0 of" in text and "lost 3 packets (" in text for text in found.run.warnings)


def test_compressed_captures_and_standard_input_are_read_alike(cli: Callable[..., Any], tmp_path: Path) -> None:
    content = pcap(pings(10, 100 * MS, 30 * MS))
    (tmp_path / "plain.pcap").write_bytes(content)
    (tmp_path / "packed.pcap.gz").write_bytes(gzip.compress(content))
    plain, packed = (_document(cli, name) for name in ("plain.pcap", "packed.pcap.gz"))
    piped = subprocess.run(
        [sys.executable, "-m", "bufferscope", "inspect", "-", "--json"], input=content, capture_output=True, check=True
    )
    assert plain["runs"][0]["metrics"] == packed["runs"][0]["metrics"]
    assert plain["runs"][0]["metrics"] == json.loads(piped.stdout)["runs"][0]["metrics"]
    assert packed["capture"]["files"][0]["is_compressed"]
    assert packed["experiment"] == "packed"


def test_two_captures_of_the_same_path_are_two_places(tmp_path: Path) -> None:
    near, far = tmp_path / "near.pcap", tmp_path / "far.pcap"
    near.write_bytes(pcap(DOWNLOAD))
    far.write_bytes(pcap(sorted(map(_moved, DOWNLOAD), key=lambda packet: packet.t_ns)))
    found = inspect([near, far], tmp_path, name="both")
    # The client sends the first packet, so that its capture has it first.
    assert [place["file"] for place in found.summary["places"]] == [str(far), str(near)]
    assert len(connections(found.run, found.summary)) == 1
    assert not any("one vantage point" in text for text in found.run.warnings)


def _moved(packet: Packet) -> Packet:
    """The same packet at the client's end: data 10 ms later, acknowledgements 10 ms earlier."""
    is_data = packet.data[12] == 203
    return packet.later(10 * MS if is_data else -10 * MS)


def test_hosts_and_ports_choose_what_is_looked_at(cli: Callable[..., Any], tmp_path: Path) -> None:
    packets = sorted([*DOWNLOAD, *pings(10, 100 * MS, 30 * MS)], key=lambda packet: packet.t_ns)
    (tmp_path / "all.pcap").write_bytes(pcap(packets))
    everything = _document(cli, "all.pcap", "--no-report")
    assert len(everything["connections"]) == len(everything["capture"]["pings"]) == 1
    only_ping = _document(cli, "all.pcap", "--host", "192.0.2.9")
    assert (len(only_ping["connections"]), len(only_ping["capture"]["pings"])) == (0, 1)
    only_tcp = _document(cli, "all.pcap", "--transport-port", "443")
    assert (len(only_tcp["connections"]), len(only_tcp["capture"]["pings"])) == (1, 0)


def test_a_capture_that_was_cut_off_is_used_up_to_there(cli: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "cut.pcap").write_bytes(pcap(DOWNLOAD)[:-100])
    document = _document(cli, "cut.pcap")
    assert document["capture"]["counts"]["packets"] == len(DOWNLOAD) - 2
    assert any("within a packet" in text for text in document["runs"][0]["warnings"])


def test_the_page_and_the_table_are_made_and_other_commands_take_the_run(
    cli: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "home.pcap").write_bytes(pcap(DOWNLOAD))
    answer = cli("inspect", "home.pcap")
    assert answer.status == 0, answer.err
    assert "203.0.113.5:443" in answer.out
    # 72 ms with the window of 60 packets, on a path of 21.2 ms.
    assert "Data of tcp/1 is queued on the path: its RTT is 52 ms above the minimum, 20 ms" in " ".join(
        answer.out.split()
    )
    assert _document(cli, "home.pcap", "--no-report")["explanation"]["cause"] == "queue"
    assert (tmp_path / "report" / "home" / "index.html").exists()
    page = (tmp_path / "report" / "home" / "index.html").read_text()
    assert all(title in page for title in ("Congestion window", "Round-trip time of the connections", "Goodput"))
    assert "is not drawn" not in page
    assert cli("show", "results/home").status == 0
    assert cli("export", "results/home").status == 0
    (tmp_path / "other.pcap").write_bytes(pcap(download(500, rate_bps=5_000_000, rtt_ns=20 * MS, window=60)))
    assert cli("inspect", "other.pcap", "--no-report", "--quiet").status == 0
    compared = cli("compare", "results/home", "results/other", "--no-report")
    assert compared.status == 0, compared.err


def test_a_capture_shorter_than_two_samples_does_not_deny_its_round_trips(tmp_path: Path) -> None:
    file = tmp_path / "lan.pcap"
    file.write_bytes(pcap(download(100, rate_bps=1_000_000_000, rtt_ns=MS // 5, window=20)))
    found = inspect([file], tmp_path)
    (flow,) = connections(found.run, found.summary)
    assert flow.round_trips is not None
    assert flow.round_trips.count > 50
    verdict = explain(found.run).verdict
    assert verdict.startswith("Cannot tell: round trips of connections were observed, but no connection long enough")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "found an empty file"),
        (b"hello, world", "found a file that begins with the bytes 68 65 6c 6c"),
        (b"\x28\xb5\x2f\xfd0000", "compressed with zstd"),
        (pcap([]), "found no packets; needed: a TCP connection or a ping"),
        (pcap([ip(0, "192.0.2.1", "192.0.2.2", 17, bytes(20))]), "found one packet (1 of UDP)"),
        (pcap(DOWNLOAD)[:10], "ends at byte 10, within the file's header"),
    ],
)
def test_what_is_no_capture_or_shows_nothing_is_refused(
    cli: Callable[..., Any], tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "any.pcap").write_bytes(content)
    answer = cli("inspect", "any.pcap")
    assert answer.status == 2
    assert answer.err.startswith("bufferscope: any.pcap: ")
    assert message in answer.err
    assert not list(tmp_path.glob("results/*"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.pcap"], "missing.pcap: no such file"),
        (["."], "found a directory"),
        (["a.pcap", "a.pcap"], "given twice"),
        (["a.pcap", "--host", "home"], "--host: found 'home'; allowed: an IPv4 or IPv6 address"),
        (["a.pcap", "--transport-port", "0"], "--transport-port: found 0; allowed: 1 to 65535"),
        (["a.pcap", "--name", "../up"], "--name: found '../up'"),
        (["a.pcap", "--transport-port", "9"], "needed: data of a TCP connection, or a ping"),
    ],
)
def test_wrong_usage_is_named(cli: Callable[..., Any], tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "a.pcap").write_bytes(pcap(pings(3, MS, MS)))
    answer = cli("inspect", *arguments)
    assert (answer.status, answer.out) == (2, "")
    assert message in answer.err


def test_reading_stops_when_the_callback_says_so_or_raises(tmp_path: Path) -> None:
    file = tmp_path / "a.pcap"
    file.write_bytes(pcap(pings(3, MS, MS)))

    def interrupt(_: int) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        inspect([file], tmp_path / "out", progress=interrupt)
    assert not list((tmp_path / "out").glob("*"))


def test_no_captures_at_all_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found no captures"):
        inspect([], tmp_path)


def test_a_run_is_named_after_its_first_file() -> None:
    names = {"a b.pcap": "a-b", "x/home.pcapng.gz": "home", "-": "capture", "...": "observed"}
    assert {name: default_name(name) for name in names} == names


def test_ctrl_c_ends_the_reading_of_a_pipe_without_a_writer_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bufferscope", "inspect", "-", "--out", str(tmp_path / "out")]
    with running(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("out/.inspect-*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=15) == 130
    assert not list(tmp_path.glob("out/*"))
