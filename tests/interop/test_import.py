"""What other programs wrote is imported: each probe and each sample of their files, and nothing that they don't say."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from laboratory import Answer

from bufferscope.base.errors import InputError
from bufferscope.interop.importing.conversion import import_file
from bufferscope.store.run import Run

Cli = Callable[..., Answer]
MS = 1_000_000
SECOND = 1_000_000_000
START_S = 1_767_225_600
"""2026-01-01 00:00 UTC."""

IPUTILS = """\
PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.
64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=20.0 ms
64 bytes from 192.0.2.1: icmp_seq=3 ttl=57 time=40.0 ms

--- 192.0.2.1 ping statistics ---
5 packets transmitted, 2 received, 60% packet loss, time 800ms
rtt min/avg/max/mdev = 20.0/30.0/40.0/10.000 ms
"""
MACOS = """\
PING example.net (192.0.2.1): 56 data bytes
64 bytes from 192.0.2.1: icmp_seq=0 ttl=57 time=20.5 ms
Request timeout for icmp_seq 1
64 bytes from 192.0.2.1: icmp_seq=2 ttl=57 time=1041.5 ms

--- example.net ping statistics ---
3 packets transmitted, 2 packets received, 33.3% packet loss
round-trip min/avg/max/stddev = 20.5/531.0/1041.5/510.5 ms
"""
STAMPED = f"""\
PING h (192.0.2.1) 56(84) bytes of data.
[{START_S}.020000] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=20.0 ms
[{START_S}.400000] no answer yet for icmp_seq=2
[{START_S}.600000] From 192.0.2.9 icmp_seq=3 Destination Host Unreachable
[{START_S}.630000] 64 bytes from 192.0.2.1: icmp_seq=4 ttl=57 time=30.0 ms
"""
BUSYBOX = """\
PING 192.0.2.1 (192.0.2.1): 56 data bytes
64 bytes from 192.0.2.1: seq=0 ttl=57 time=20.000 ms
64 bytes from 192.0.2.1: seq=2 ttl=57 time=30.000 ms
"""
FPING = f"""\
[{START_S}.02000] 192.0.2.1 : [0], 64 bytes, 20.0 ms (20.0 avg, 0% loss)
[{START_S}.50000] 192.0.2.1 : [1], timed out (20.0 avg, 50% loss)
[{START_S + 2}.03000] 192.0.2.1 : [2], 64 bytes, 30.0 ms (25.0 avg, 33% loss)
"""
FPING_COUNT = """\
192.0.2.1 : 20.0 - 30.0
192.0.2.2 : - - -
"""
RRDTOOL = f"""\
                 uptime                loss              median               ping1               ping2

{START_S}: 1.0000000000e+02 0.0000000000e+00 2.0000000000e-02 1.5000000000e-02 2.5000000000e-02
{START_S + 300}: 1.0000000000e+02 1.0000000000e+00 3.0000000000e-02 3.0000000000e-02 nan
{START_S + 600}: nan nan nan nan nan
"""
CSV = f"""\
time,rtt_ms
{START_S},20
{START_S + 1},
2026-01-01T00:00:02Z,30.5
"""


def _imported(directory: Path, text: str | bytes, name: str = "found.txt") -> Run:
    file = directory / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return import_file(file, directory / "results")


def _rtts_ms(run: Run, probe: str = "ping") -> list[tuple[int, float | None]]:
    """Sequence number and round trip of every probe."""
    rows = run.probes.filter(probe=probe).sort("sent_ns")
    return [(seq, rtt and rtt / MS) for seq, rtt in rows.select("seq", "rtt_ns").iter_rows()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (IPUTILS, [(1, 20), (2, None), (3, 40), (4, None), (5, None)]),
        (MACOS, [(0, 20.5), (1, None), (2, 1041.5)]),
        (STAMPED, [(1, 20), (2, None), (3, None), (4, 30)]),
        (BUSYBOX, [(0, 20), (1, None), (2, 30)]),
        (FPING, [(0, 20), (1, None), (2, 30)]),
        (RRDTOOL, [(0, 15), (1, 25), (2, 30), (3, None)]),
        (CSV, [(0, 20), (1, None), (2, 30.5)]),
    ],
    ids=["iputils", "macos", "time stamps", "busybox", "fping", "smokeping", "csv"],
)
def test_every_probe_is_there_and_missing_ones_are_lost(
    tmp_path: Path, text: str, expected: list[tuple[int, float | None]]
) -> None:
    assert _rtts_ms(_imported(tmp_path, text)) == expected


def test_without_time_stamps_pings_interval_is_that_of_its_last_line(tmp_path: Path) -> None:
    run = _imported(tmp_path, IPUTILS)
    assert run.probes.sort("seq")["sent_ns"].to_list() == [n * 200 * MS for n in range(5)]
    assert run.warnings == ["no timestamps (ping -D): probes are taken to have been sent every 200 ms"]
    assert not run.meta["summary"]["observed"]["clock"]


def test_a_stamped_probe_was_sent_a_round_trip_before_its_stamp(tmp_path: Path) -> None:
    run = _imported(tmp_path, STAMPED)
    assert run.probes.sort("seq")["sent_ns"].to_list() == [0, 200 * MS, 400 * MS, 600 * MS]
    assert run.meta["started"] == "2026-01-01T00:00:00.000+00:00"


def test_sequence_numbers_go_on_after_16_bits(tmp_path: Path) -> None:
    lines = [f"64 bytes from h: icmp_seq={seq % 65536} ttl=57 time=20.0 ms" for seq in range(65530, 65545)]
    run = _imported(tmp_path, "\n".join(lines))
    assert _rtts_ms(run) == [(seq, 20) for seq in range(65530, 65545)]


def test_each_target_of_fping_is_a_probe(tmp_path: Path) -> None:
    run = _imported(tmp_path, FPING_COUNT)
    assert _rtts_ms(run, "192.0.2.1") == [(0, 20), (1, None), (2, 30)]
    assert run.metrics["rtt.192.0.2.2.lost"] == 3


def _irtt() -> dict[str, Any]:
    def trip(seq: int, lost: bool) -> dict[str, Any]:
        sent = START_S * SECOND + seq * 100 * MS
        stamps = {"client": {"send": {"wall": sent, "monotonic": 1}}}
        if lost:
            return {"seqno": seq, "lost": "true_up", "timestamps": stamps, "delay": {}, "ipdv": {}}
        delay = {"rtt": 20 * MS, "send": 15 * MS, "receive": -5 * MS}
        return {"seqno": seq, "lost": "false", "timestamps": stamps, "delay": delay, "ipdv": {}}

    return {
        "version": {"irtt": "0.9.0", "protocol": 1, "json_format": 1},
        "config": {"remote_address": "192.0.2.1:2112", "params": {"interval": 100 * MS, "length": 172, "dscp": 184}},
        "stats": {},
        "round_trips": [trip(0, False), trip(1, True), trip(2, False)],
    }


def test_irtts_round_trips_keep_their_one_way_delays_unless_the_clocks_contradict(tmp_path: Path) -> None:
    run = _imported(tmp_path, json.dumps(_irtt()))
    columns = ("sent_ns", "rtt_ns", "owd_up_ns", "owd_down_ns")
    assert run.probes.select(columns).rows() == [
        (0, 20 * MS, 15 * MS, None),
        (100 * MS, None, None, None),
        (200 * MS, 20 * MS, 15 * MS, None),
    ]
    (entry,) = run.scenario["traffic"]
    assert (entry["kind"], entry["interval_ns"], entry["dscp"]) == ("irtt", 100 * MS, 46)  # type: ignore[typeddict-item]


def _iperf3(protocol: str = "TCP", **stream: Any) -> dict[str, Any]:
    def interval(second: int) -> dict[str, Any]:
        known = {"socket": 5, "start": second, "end": second + 1, "bytes": 1_250_000, "omitted": False}
        return {"streams": [{**known, "sender": True, **stream}]}

    return {
        "start": {
            "version": "iperf 3.12",
            "timestamp": {"timesecs": START_S},
            "connecting_to": {"host": "192.0.2.1", "port": 5201},
            "tcp_mss_default": 1448,
            "test_start": {"protocol": protocol, "num_streams": 1, "blksize": 1448, "reverse": 0, "tos": 0},
        },
        "intervals": [interval(second) for second in range(4)],
        "end": {
            "sum_received": {"bits_per_second": 9.5e6, "jitter_ms": 1.25, "lost_percent": 5},
            "sender_tcp_congestion": "cubic",
        },
    }


def test_iperf3s_intervals_are_samples_of_a_flow(tmp_path: Path) -> None:
    stream: dict[str, Any] = {"retransmits": 3, "snd_cwnd": 144_800, "rtt": 120_000}
    run = _imported(tmp_path, json.dumps(_iperf3("TCP", **stream)))
    assert run.metrics["goodput.iperf3.up_mbit"] == 10
    assert run.metrics["retransmits.total"] == 12
    assert run.metrics["cwnd.iperf3.up.max_packets"] == 100
    assert run.flows["srtt_ns"].max() == 120 * MS
    assert run.scenario["traffic"][0]["congestion"] == "cubic"  # type: ignore[typeddict-item]


def test_what_nobody_counted_is_not_zero(tmp_path: Path) -> None:
    run = _imported(tmp_path, json.dumps(_iperf3(sender=False)))
    assert run.metrics["goodput.iperf3.down_mbit"] == 10
    assert "retransmits.total" not in run.metrics


def test_iperf3s_jitter_and_loss_are_kept_as_it_reports_them(tmp_path: Path, cli: Cli) -> None:
    run = _imported(tmp_path, json.dumps(_iperf3("UDP", packets=863)))
    assert run.meta["summary"]["observed"]["reported"] == {"received_bps": 9.5e6, "jitter_ms": 1.25, "lost_percent": 5}
    assert "jitter_ms 1.25" in cli("show", str(run.path)).out
    assert "loss.iperf3.up_percent" not in run.metrics


def test_omitted_intervals_do_not_count(tmp_path: Path) -> None:
    content = _iperf3()
    content["intervals"][0]["streams"][0]["omitted"] = True
    run = _imported(tmp_path, json.dumps(content))
    assert run.metrics["goodput.iperf3.up_mbit"] == 10
    assert run.scenario["duration_ns"] == 3 * SECOND


def flent(name: str, series: dict[str, list[dict[str, Any]]], **more: Any) -> dict[str, Any]:
    """A data file of Flent with these raw values."""
    return {
        "version": 4,
        "metadata": {"NAME": name, "T0": "2026-01-01T00:00:00.000000Z", "STEP_SIZE": 0.2, "FLENT_VERSION": "2.1.1"},
        "x_values": [0.0, 0.2],
        "results": {key: [None, None] for key in series},
        "raw_values": series,
        **more,
    }


RRUL = {
    "Ping (ms) ICMP": [{"t": START_S + 0.03, "val": 30.0, "seq": 1}, {"t": START_S + 0.45, "val": 50.0, "seq": 3}],
    "Ping (ms) UDP EF": [{"t": START_S + 0.03, "val": 30.0, "seq": 0}, {"t": START_S + 0.3, "seq": 1, "lost": True}],
    "TCP upload BE": [{"t": START_S + 5 + n, "dur": 1.0, "val": 10.0} for n in range(1, 6)],
    "TCP upload avg": [],
    "TCP download CS5": [{"t": START_S + 5 + n, "dur": 1.0, "val": 20.0, "tcp_cwnd": 50} for n in range(1, 6)],
    "cpu_stats_localhost": [],
}


def test_flents_series_have_the_names_of_bufferscopes_own_rrul(tmp_path: Path) -> None:
    text = gzip.compress(json.dumps(flent("rrul", RRUL)).encode())
    run = _imported(tmp_path, text, "rrul-2026.flent.gz")
    assert run.experiment == "rrul-2026"
    assert _rtts_ms(run, "rrul.ping") == [(1, 30), (2, None), (3, 50)]
    assert _rtts_ms(run, "rrul.udp.ef") == [(0, 30), (1, None)]
    # A number of JSON tells times since 1970 to some 100 ns.
    assert run.scenario["warmup_ns"] == pytest.approx(5 * SECOND, abs=1000)  # the load begins then, and metrics with it
    assert run.metrics["goodput.rrul.up.be_mbit"] == pytest.approx(10)
    assert run.metrics["goodput.rrul.down.cs5_mbit"] == pytest.approx(20)
    assert run.metrics["cwnd.rrul.down.cs5.max_packets"] == 50
    left = "series that are neither a flow's rate nor round trips, and were left out: cpu_stats_localhost"
    assert left in run.warnings


def test_numbered_streams_are_flows_of_one_entry(tmp_path: Path) -> None:
    rates = [{"t": START_S + 1.0, "dur": 1.0, "val": 5.0}]
    run = _imported(tmp_path, json.dumps(flent("tcp_ndown", {f"TCP download::{n}": rates for n in (1, 2, 3)})))
    assert run.scenario["traffic"][0]["flows"] == 3  # type: ignore[typeddict-item]
    assert run.metrics["goodput.tcp_ndown.down_mbit"] == 15


def test_an_old_file_without_raw_values_is_read_from_its_results(tmp_path: Path) -> None:
    old = {
        "metadata": {"NAME": "tcp_download", "TIME": "2013-01-01T00:00:00.000000", "NETPERF_WRAPPER_VERSION": "0.5"},
        "x_values": [0.2, 0.4, 0.6],
        "results": {"TCP download": [8.0, 8.0, None], "Ping (ms) ICMP": [20.0, None, 40.0]},
    }
    run = _imported(tmp_path, json.dumps(old))
    assert run.metrics["rtt.mean_ms"] == 20  # the other was sent after the last rate
    assert run.metrics["idle.p50_ms"] == 40
    assert run.flows["delivered_bytes"].max() == 400_000
    assert run.warnings == ["only values that Flent interpolated, no raw ones: TCP download, Ping (ms) ICMP"]


def test_files_are_imported_from_the_command_line(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("before.txt").write_text(STAMPED)
    Path("after.csv").write_text(CSV)
    answer = cli("import", "before.txt", "after.csv", "--name", "home", "--json")
    assert [run["engine"] for run in json.loads(answer.out)["runs"]] == ["import", "import"]
    compared = cli("compare", "results/home", "--no-report").out
    assert "before.txt" in compared
    assert "after.csv" in compared
    assert cli("export", "results/home", "--out", "tidy").status == 0


def test_a_page_says_that_the_path_is_not_known(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("before.txt").write_text(STAMPED)
    Path("after.csv").write_text(CSV)
    assert cli("import", "before.txt", "after.csv", "--name", "home", "--quiet").status == 0
    assert cli("compare", "results/home", "--report", "page", "--quiet").status == 0
    page = Path("page/index.html").read_text()
    assert "not known" in page
    assert "bufferscope import before.txt --name home" in page
    assert "observed by ping, started 2026-01-01 00:00 UTC" in page


def test_a_format_can_be_given(tmp_path: Path) -> None:
    (tmp_path / "ping.txt").write_text(IPUTILS)
    with pytest.raises(InputError, match="--as: found 'pong'; allowed: flent, irtt, iperf3"):
        import_file(tmp_path / "ping.txt", tmp_path, "pong")
    with pytest.raises(InputError, match=r"ping\.txt: not JSON, or cut off"):
        import_file(tmp_path / "ping.txt", tmp_path, "irtt")
