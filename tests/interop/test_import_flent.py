"""Files of Flent: whatever the test, each of its series is read as what it is, over the time under load."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flentfiles import DELAY_S, LENGTH_S, START_S, before_version_4, content, pings, rates, transactions, write
from laboratory import Answer

from bufferscope.base.errors import InputError
from bufferscope.interop.importing.conversion import import_file
from bufferscope.store.run import Run

Cli = Callable[..., Answer]
NETPERF = {"RUNNER": "NetperfDemoRunner", "UNITS": "Mbits/s"}
STATE = {"tcp_cwnd": 40, "tcp_rtt": 60.0, "tcp_pacing_rate": 9.0, "tcp_delivery_rate": 8.0}


def imported(directory: Path, made: dict[str, Any], name: str = "test.flent.gz") -> Run:
    """The run of a file."""
    return import_file(write(directory, made, name), directory / "results")


@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["test.flent.gz", "test.flent"])
def test_every_version_of_a_test_says_the_same(tmp_path: Path, version: int, name: str) -> None:
    series = {
        "Ping (ms) ICMP": pings(20, 50),
        "Ping (ms) UDP BE1": transactions(25.0),
        "TCP upload BE": rates(3),
        "TCP download BE": rates(8),
    }
    made = content("rrul_be", series)
    run = imported(tmp_path, made if version == 4 else before_version_4(made, version), name)
    assert run.metrics["goodput.rrul_be.up.be_mbit"] == pytest.approx(3, rel=1e-4)
    assert run.metrics["goodput.rrul_be.down.be_mbit"] == pytest.approx(8, rel=1e-4)
    assert run.metrics["goodput.total_mbit"] == pytest.approx(11, rel=1e-4)
    assert run.metrics["rtt.rrul_be.ping.p50_ms"] == pytest.approx(50)
    assert run.metrics["rtt.rrul_be.udp.be1.mean_ms"] == pytest.approx(25)
    assert any("means over its intervals" in warning for warning in run.warnings)


def test_metrics_are_of_the_time_under_load_and_the_rest_has_its_own_row(tmp_path: Path) -> None:
    run = imported(tmp_path, content("tcp_download", {"Ping (ms) ICMP": pings(20, 50), "TCP download": rates(8)}))
    assert run.metrics["goodput.total_mbit"] == pytest.approx(8, rel=1e-4)  # 8 * 10 / 15, if the idle end counted
    assert run.metrics["rtt.p5_ms"] == run.metrics["rtt.max_ms"] == 50
    assert run.metrics["rtt.sent"] == LENGTH_S * 5
    assert (run.metrics["idle.p50_ms"], run.metrics["idle.sent"]) == (20, 2 * DELAY_S * 5 - 1), (
        "one while the queue drained"
    )


def test_the_time_under_load_is_stated(tmp_path: Path, cli: Cli) -> None:
    run = imported(tmp_path, content("tcp_download", {"Ping (ms) ICMP": pings(20, 50), "TCP download": rates(8)}))
    assert "under load, from 4.999 s to 14.999 s" in cli("show", str(run.path)).out
    other = write(tmp_path, content("tcp_download", {"TCP download": rates(9)}), "other.flent.gz")
    import_file(other, tmp_path / "results")
    answer = cli("compare", str(tmp_path / "results" / "test"), str(tmp_path / "results" / "other"), "--no-report")
    assert "Metrics are of the time under load, in each run its own time; idle.* are of the rest." in answer.out


@pytest.mark.parametrize(
    ("test", "names"),
    [
        ("rrul", ["TCP upload BE", "TCP upload BK", "TCP upload CS5", "TCP upload EF"]),
        ("tcp_nup", [f"TCP upload::{n}" for n in range(1, 5)]),
        ("rrul_be_nflows", [f"TCP upload BE::{n}" for n in range(1, 5)]),
        ("rtt_fair_up", [f"TCP upload BE{n} 192.0.2.{n}" for n in range(1, 5)]),
        ("rtt_fair_var_up", [f"TCP upload BE fe80::{n}:eff:fe00:1%eth0" for n in range(1, 5)]),
        ("tcp_4up_squarewave", ["TCP bbr 1", "TCP cubic 2", "TCP cubic 3", "TCP bbr 4"]),
        ("tcp_upload", ["TCP upload"]),
    ],
)
def test_the_state_of_sockets_is_no_flow(tmp_path: Path, test: str, names: list[str]) -> None:
    """Flent's option --socket-stats: windows are in packets, times in ms, and rates are the kernel's estimates."""
    series = {name: rates(2, **STATE) for name in names}
    parts = {f"{name}::{key}": [value] * 100 for name in names for key, value in STATE.items()}
    run = imported(tmp_path, content(test, series, results=parts))
    assert run.metrics["goodput.total_mbit"] == pytest.approx(2 * len(names), rel=1e-4)
    assert run.metrics["goodput.jain"] == pytest.approx(1)
    assert run.flows["flow"].n_unique() == len(names)
    assert run.flows["cwnd_bytes"].drop_nulls().unique().to_list() == [40 * 1448]
    assert run.flows["srtt_ns"].drop_nulls().unique().to_list() == [60_000_000]
    assert f"tcp_pacing_rate of {len(names)} series" in " ".join(run.warnings)


@pytest.mark.parametrize("has_meta", [True, False], ids=["RUNNER and UNITS", "by its name"])
def test_series_with_other_names_are_flows(tmp_path: Path, *, has_meta: bool) -> None:
    series = {"TCP cubic": rates(8), "TCP cubic 2": rates(2), "TCP reno": rates(6)}
    meta = dict.fromkeys(series, NETPERF) if has_meta else {}
    run = imported(tmp_path, content("tcp_2up_square", series, meta))
    assert run.metrics["goodput.tcp_2up_square.up_mbit"] == pytest.approx(16, rel=1e-4)
    names = [entry["name"].removeprefix("tcp_2up_square.up.") for entry in run.scenario["traffic"]]
    assert names == ["cubic", "cubic-2", "reno"]


def test_a_series_with_any_name_is_what_measured_it(tmp_path: Path) -> None:
    series = {
        "Bulk": rates(8),
        "Back": rates(4),
        "Flood": [],
        "To the gateway": pings(20, 50),
        "VoIP": pings(21, 51),
        "Load": rates(99),
    }
    meta = {
        "Bulk": {**NETPERF, "COMMAND": "netperf -t TCP_STREAM -l 10"},
        "Back": {**NETPERF, "COMMAND": "netperf -t TCP_MAERTS -l 10"},
        "Flood": {"RUNNER": "IperfCsvRunner", "UNITS": "Mbits/s", "COMMAND": "iperf --udp --bandwidth 100M"},
        "To the gateway": {"RUNNER": "PingRunner", "UNITS": "ms"},
        "VoIP": {"RUNNER": "IrttRunner", "UNITS": "ms"},
        "Load": {"RUNNER": "CpuStatsRunner", "UNITS": "misc"},
    }
    # iperf's values have no interval, so that its interpolated results are read.
    flood: list[float | None] = [None] * 25 + [100.0] * 50 + [None] * 25
    run = imported(tmp_path, content("mine", series, meta, {"Flood": flood}))
    found = {entry["name"]: entry["kind"] for entry in run.scenario["traffic"]}
    assert found == {
        "mine.to-the-gateway": "ping",
        "mine.voip": "irtt",
        "mine.up.bulk": "tcp",
        "mine.down.back": "tcp",
        "mine.up.udp.flood": "udp",
    }
    assert run.metrics["goodput.mine.up.udp.flood_mbit"] == pytest.approx(
        100, rel=0.03
    )  # one step earlier than the load
    assert any("were left out: Load (misc, CpuStatsRunner)" in warning for warning in run.warnings)


@pytest.mark.parametrize(
    ("test", "series", "meta"),
    [
        ("http", "HTTP latency", {"RUNNER": "HttpGetterRunner", "UNITS": "ms"}),
        ("http", "HTTP latency", {"UNITS": "ms"}),
        ("voip", "VoIP", {"RUNNER": "DitgRunner", "UNITS": "Kbps"}),
        ("dash", "Dash", {"RUNNER": "DashJsRunner", "UNITS": "Mbits/s"}),
        ("sctp", "SCTP upload CS0", NETPERF),
    ],
)
def test_what_is_no_flow_and_no_round_trip_is_named(
    tmp_path: Path, test: str, series: str, meta: dict[str, str]
) -> None:
    """The time of a page, a one-way delay and what a player saw are neither; nor is SCTP, of which there is no flow."""
    alone = content(test, {series: pings(200, 500, numbered=False)}, {series: meta})
    with pytest.raises(InputError, match=rf"found no rate of a flow and no round trip .*; its series are: {series} \("):
        imported(tmp_path, alone)
    beside = content(test, {series: pings(200, 500, numbered=False), "TCP upload": rates(8)}, {series: meta})
    run = imported(tmp_path, beside)
    assert run.metrics["goodput.total_mbit"] == pytest.approx(8, rel=1e-4)
    assert run.probes.is_empty()
    assert any(series in warning for warning in run.warnings)


def test_netperfs_round_trips_over_tcp_are_transactions_in_every_version(tmp_path: Path) -> None:
    """Flent transforms only UDP_RR since version 4, in raw values and in results."""
    raw = [{**each, "val": 40.0} for each in transactions(1)]
    newest = content("dslreports_8dn", {"Ping (ms) TCP BE1": raw, "TCP download BE": rates(8)})
    for version in (3, 4):
        run = imported(tmp_path, newest | {"version": version})
        assert run.metrics["rtt.mean_ms"] == pytest.approx(25)
    newest["raw_values"]["Ping (ms) TCP BE1"] = []
    newest["results"]["Ping (ms) TCP BE1"] = [40.0] * 100
    assert imported(tmp_path, newest).metrics["rtt.mean_ms"] == pytest.approx(25)
    assert imported(tmp_path, newest | {"version": 3}).metrics["rtt.mean_ms"] == pytest.approx(40)


def test_an_interval_in_which_netperf_waited_for_a_lost_packet_is_no_round_trip(tmp_path: Path) -> None:
    """After the loss at 8 s nothing is answered until the end: one transaction in 12 s, which Flent shows as 10 s."""
    answered = [each for each in transactions(25.0) if each["t"] < START_S + 8]
    stalled = {"t": START_S + 20.0, "dur": 12.0, "val": 10_000.0}
    made = content("rrul", {"Ping (ms) UDP EF": [*answered, stalled], "TCP download BE": rates(8)})
    for each in (made, before_version_4(made, 3)):
        run = imported(tmp_path, each)
        assert run.metrics["rtt.max_ms"] == pytest.approx(25)
        assert run.metrics["rtt.lost"] == 1
    alone = content("rrul", {"Ping (ms) UDP EF": [stalled], "TCP download BE": rates(8)})
    assert imported(tmp_path, alone).metrics["rtt.lost"] == 1


def test_long_intervals_one_after_the_other_are_long_round_trips(tmp_path: Path) -> None:
    """When the load begins, a full buffer delays every answer by 3 s: netperf's intervals become as long as that."""
    idle = [each for each in transactions(25.0) if each["t"] <= START_S + DELAY_S]
    slow = [{"t": START_S + DELAY_S + 3.0 * n, "dur": 3.0, "val": 3000.0} for n in range(1, 5)]
    made = content("rrul", {"Ping (ms) UDP EF": [*idle, *slow], "TCP download BE": rates(8)})
    run = imported(tmp_path, made)
    assert run.metrics["rtt.p50_ms"] == pytest.approx(3000)
    assert run.metrics["rtt.lost"] == 0


def test_no_round_trip_is_longer_than_its_interval(tmp_path: Path) -> None:
    """Netperf rounds rates to two decimals: one transaction in 3.4 s is 0.29 a second, whose inverse is 3.45 s."""
    idle = [each for each in transactions(25.0) if each["t"] <= START_S + DELAY_S]
    slow = [{"t": START_S + DELAY_S + 3.4 * n, "dur": 3.4, "val": 1000 / 0.29} for n in range(1, 5)]
    made = content("rrul", {"Ping (ms) UDP EF": [*idle, *slow], "TCP download BE": rates(8)})
    for each in (made, before_version_4(made, 3)):
        assert imported(tmp_path, each).metrics["rtt.max_ms"] == pytest.approx(3400)


def test_an_interval_without_a_transaction_is_not_answered(tmp_path: Path) -> None:
    made = before_version_4(content("rrul", {"Ping (ms) UDP EF": transactions(25.0), "TCP download BE": rates(8)}), 3)
    made["raw_values"]["Ping (ms) UDP EF"][50]["val"] = 0
    assert imported(tmp_path, made).metrics["rtt.lost"] == 1


def test_old_times_in_a_zone_that_nobody_wrote_down_are_found_by_the_raw_values(tmp_path: Path) -> None:
    """Pings have raw values, with times since 1970; the flow has only results, at steps from T0 on, in local time."""
    made = before_version_4(content("tcp_download", {"Ping (ms) ICMP": pings(20, 50)}), 2)
    made["results"]["TCP download"] = [None] * 25 + [8.0] * 50 + [None] * 25
    for local in ("2026-01-01T05:45:00", "2025-12-31T16:00:00.000000", "2026-01-01T00:00:00.000000Z"):
        made["metadata"]["T0"] = local
        run = imported(tmp_path, made)
        assert run.scenario["duration_ns"] == pytest.approx(20e9, rel=0.02)
        assert run.metrics["rtt.p50_ms"] == 50


def test_a_flow_that_failed_is_named(tmp_path: Path) -> None:
    run = imported(tmp_path, content("tcp_ndown", {"TCP download::1": rates(8), "TCP download::2": []}))
    assert "series without any value, of parts of the test that failed: TCP download::2" in run.warnings


def test_names_that_are_alike_stay_apart(tmp_path: Path) -> None:
    names = ["Ping (ms) ICMP host a (extra)", "Ping (ms) ICMP HOST A (extra)"]
    run = imported(tmp_path, content("ping", {names[0]: pings(20, 20), names[1]: pings(30, 30)}))
    assert sorted(run.probes["probe"].unique()) == ["ping.ping-host-a-extra", "ping.ping-host-a-extra-2"]


def test_a_direction_that_nothing_shows_is_named(tmp_path: Path) -> None:
    run = imported(tmp_path, content("mine", {"TCP cubic": rates(8)}))
    assert "flows whose direction the file does not say, taken to be uploads: TCP cubic" in run.warnings
    down = imported(tmp_path, content("tcp_2down_square", {"TCP cubic": rates(8)}))
    assert down.metrics["goodput.tcp_2down_square.down.cubic_mbit"] == pytest.approx(8, rel=1e-4)


def test_a_staggered_test_is_loaded_from_its_first_flow_to_its_last(tmp_path: Path) -> None:
    series = {"TCP cubic": rates(8, 0, 20), "TCP reno": rates(4, 5, 5)}
    run = imported(tmp_path, content("tcp_2up_square", series))
    assert run.metrics["goodput.tcp_2up_square.up.reno_mbit"] == pytest.approx(4 * 5 / 20, rel=1e-3)
    assert run.metrics["goodput.total_mbit"] == pytest.approx(9, rel=1e-3)


def test_hostile_values_do_not_run_away(tmp_path: Path) -> None:
    series = {
        "Ping (ms) UDP \x1b[31mEF": [{"t": START_S, "dur": 0.2, "val": 1e-300}, {"t": START_S, "dur": 1e300, "val": 1}],
        "TCP upload": [*rates(8), {"t": START_S + 1e9, "dur": -1, "val": 8}],
    }
    run = imported(tmp_path, content("\x1b]0;x\x07", series) | {"version": 3})
    assert run.metrics["goodput.total_mbit"] == pytest.approx(8, rel=1e-4)
    assert not any("\x1b" in word for word in [*run.warnings, run.meta["title"], *run.probes["probe"]])
    for name, values in (
        ("HTTP \x1b[31m", []),
        ("TCP upload \x1b[31m", [{"t": START_S, "dur": 1e9, "val": 1e15}]),
        ("TCP \x1b", 1),
    ):
        made = content("\x1b[2J", {}) | {"raw_values": {name: values}}
        with pytest.raises(InputError) as refused:
            imported(tmp_path, made)
        assert "\x1b" not in str(refused.value)
    with pytest.raises(InputError, match="allowed: at most 2000"):
        imported(tmp_path, content("rrul", {f"TCP upload::{n}": [] for n in range(2500)}))


def test_what_netperf_left_in_the_send_buffer_is_no_goodput(tmp_path: Path) -> None:
    """It passed 12 Mbit/s to the socket for 10 s, and got the last byte acknowledged after 15 s: a mean of 8 Mbit/s."""
    meta = {"TCP upload": {**NETPERF, "MEAN_VALUE": 8.0}}
    run = imported(tmp_path, content("tcp_upload", {"TCP upload": rates(12)}, meta))
    assert run.metrics["goodput.tcp_upload.up_mbit"] == pytest.approx(8, rel=1e-4)
    assert run.warnings == ["goodput of uploads is without the 5 MB that netperf still had in send buffers at the end"]
    del meta["TCP upload"]["MEAN_VALUE"]
    unknown = imported(tmp_path, content("tcp_upload", {"TCP upload": rates(12)}, meta))
    assert unknown.metrics["goodput.tcp_upload.up_mbit"] == pytest.approx(12, rel=1e-4)
    assert unknown.warnings == ["goodput of uploads counts the bytes that were passed to the sockets, as netperf does"]
