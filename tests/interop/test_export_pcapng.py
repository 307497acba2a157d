"""Packets of simulated runs as pcapng files, read by tshark."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest
from handmade import PING, TCP, HandmadeRun, scenario
from laboratory import ROUTED, SMALL, Answer, tshark, write

import bufferscope as bs
from bufferscope.base.errors import InputError
from bufferscope.engines.capture_points import LAYERS
from bufferscope.interop.packets.exporting import export_packets
from bufferscope.store.finding import find_anywhere
from bufferscope.store.run import Run

Cli = Callable[..., Answer]
REPEATED = " || ".join(
    f"tcp.analysis.{kind}"
    for kind in ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order")
)

PATH = ROUTED.replace('duration = "2s"', 'duration = "5s"')
DATAGRAMS = """
[[traffic]]
name = "stream"
kind = "udp"
from = "h1"
to = "h2"
rate = "300kbit"

[[traffic]]
name = "call"
kind = "voip"
from = "h1"
to = "h2"
"""


def simulated(tmp_path: Path, text: str = SMALL, changes: Sequence[str] = ()) -> Run:
    """A stored run of an experiment."""
    bs.run(write(tmp_path, text), changes, out=tmp_path / "results")
    (run,) = find_anywhere(tmp_path / "results")
    return run


def totals(run: Run) -> dict[str, Any]:
    """The simulator's own counters."""
    return cast(dict[str, Any], run.meta["summary"])


def exported(run: Run, directory: Path, **options: object) -> Path:
    """The file of a run's packets."""
    (file,) = export_packets([run], directory, **options)  # type: ignore[arg-type]
    return file


def retransmits(run: Run) -> int:
    """What the senders counted at the end of the run."""
    return int(run.flows.group_by("flow").agg(pl.col("retransmits").last())["retransmits"].sum())


def found_by_tshark(run: Run, directory: Path, **options: object) -> int:
    """The retransmissions that tshark finds in what the sender sees.

    tshark calls a segment that fills in or repeats what was sent a fast, a spurious or a plain retransmission; or out
    of order, if it comes sooner after the last new one than the handshake took. A sender never reorders what it sends,
    so each of these is a retransmission. A packet before segmentation has several segments, each of which the records
    count. The last sample is taken at the duration, and the run may go on after it.
    """
    during = f"frame.time_epoch < {run.scenario['duration_ns'] / 1e9}"
    found = tshark(exported(run, directory, **options), f"({REPEATED}) && {during}", "tcp.len")
    return sum(max(1, math.ceil(int(payload_bytes) / run.meta["mss_bytes"])) for (payload_bytes,) in found)


BULK = """
[[traffic]]
name = "second"
kind = "tcp"
from = "h1"
to = "h2"
flows = 3
start = "500ms"

[[traffic]]
name = "back"
kind = "tcp"
from = "h2"
to = "h1"
"""


@pytest.mark.parametrize(
    "changes",
    [
        [],
        ["traffic.bulk.congestion=cubic", "link.line.queue.limit=200p", "duration=10s"],
        ["traffic.bulk.congestion=bbr", "link.line.queue.limit=10p"],
        ['link.line.queue={ qdisc = "fq_codel" }'],
        ["link.line.wire={ loss = 0.01 }"],
        ['link.access.ring={ size = "64p", bql = true }'],
        ["host.h1.tcp.gso_max_segs=45", "link.access.rate=1gbit"],
    ],
    ids=["reno", "cubic-large", "bbr-small", "fq_codel", "lossy", "ring", "offload"],
)
def test_tshark_finds_the_retransmissions_that_the_records_have(tmp_path: Path, changes: list[str]) -> None:
    run = simulated(tmp_path, PATH, changes)
    assert found_by_tshark(run, tmp_path / "export") == retransmits(run) > 0


def test_tshark_finds_the_retransmissions_of_each_sender(tmp_path: Path) -> None:
    run = simulated(tmp_path, PATH + BULK)
    sent = [found_by_tshark(run, tmp_path / port[:2], ports=[port], layers=["wire"]) for port in ("h1>r1", "h2>r1")]
    assert sum(sent) == retransmits(run) > 0


def test_tshark_has_nothing_to_complain_about(tmp_path: Path) -> None:
    run = simulated(tmp_path, SMALL + DATAGRAMS)
    for layer in ("qdisc", "wire", "arrived"):
        file = exported(run, tmp_path / layer, layers=[layer], snaplen=2000)
        assert tshark(file, "_ws.malformed || _ws.expert.severity >= 0x00800000", "frame.number") == []
        bad = "ip.checksum.status == 0 || tcp.checksum.status == 0 || udp.checksum.status == 0"
        assert tshark(file, bad, "frame.number") == []
        assert tshark(file, "tcp.checksum.status == 1", "frame.number"), "tshark has verified checksums"
        assert {protocol for (protocol,) in tshark(file, "ip", "ip.proto")} == {"1", "6", "17"}


WIFI = (
    PATH.replace('name = "line"', 'name = "air"').replace('queue = { qdisc = "pfifo", limit = "20p" }', "")
    + """
[[wifi]]
name = "wlan"
access_point = "r1"
links = ["air"]
"""
)
"""The same path with its second link on the air."""


def test_tshark_reads_what_was_sent_over_the_air(tmp_path: Path) -> None:
    text = WIFI.replace('rate = "10mbit"\ndelay = "10ms"', 'rate = "13mbit"').replace('"5s"', '"2s"')
    file = exported(simulated(tmp_path, text), tmp_path / "air", layers=["ring", "wire"])
    assert {"r1>h2 ring", "r1>h2 wire", "h2>r1 ring", "h2>r1 wire"} <= interface_names(file)
    assert tshark(file, "_ws.malformed || tcp.checksum.status == 0 || ip.checksum.status == 0", "frame.number") == []


def interface_names(file: Path) -> set[str]:
    """The names of the interfaces that have packets."""
    return {name for (name,) in tshark(file, "frame", "frame.interface_name")}


def test_each_port_and_layer_is_an_interface(tmp_path: Path) -> None:
    run = simulated(tmp_path, PATH)
    ports = ("h1>r1", "r1>h1", "r1>h2", "h2>r1")
    expected = {f"{port} {layer}" for port in ports for layer in ("qdisc", "wire", "arrived")}
    assert interface_names(exported(run, tmp_path / "all", layers=list(LAYERS))) == expected | {"r1>h2 dropped"}


def test_by_default_a_file_shows_what_the_first_sender_sees(tmp_path: Path) -> None:
    run = simulated(tmp_path, PATH)
    assert interface_names(exported(run, tmp_path / "sender")) == {"h1>r1 wire", "r1>h1 arrived"}
    assert interface_names(exported(run, tmp_path / "port", ports=["r1>h2"])) == {"r1>h2 wire"}


def test_dropped_packets_say_why(tmp_path: Path) -> None:
    run = simulated(tmp_path, PATH)
    rows = tshark(exported(run, tmp_path / "drops", layers=["dropped"]), "frame", "frame.comment", "frame.time_epoch")
    assert len(rows) == run.drops.height > 0
    assert {comment for comment, _ in rows} == {f"dropped: {reason}" for reason in run.drops["reason"].unique()}
    times = [round(float(time.split(".")[0])) * 10**9 + int(time.split(".")[1]) for _, time in rows]
    assert times == run.drops["t_ns"].to_list()


def test_marks_are_seen_on_the_wire(tmp_path: Path) -> None:
    marking = ['link.line.queue={ qdisc = "codel", ecn = true }', "traffic.bulk.ecn=true"]
    run = simulated(tmp_path, PATH, marking)
    file = exported(run, tmp_path / "wire", ports=["r1>h2"], layers=["wire"])
    marks = tshark(file, "ip.dsfield.ecn == 3", "frame.number")
    assert len(marks) == next(port["marked"] for port in totals(run)["ports"] if port["port"] == "r1>h2") > 0


def test_a_packet_is_as_long_as_on_the_wire_and_only_its_headers_are_stored(tmp_path: Path) -> None:
    run = simulated(tmp_path)
    file = exported(run, tmp_path / "wire", ports=["h1>h2"], layers=["wire"])
    lengths = {(int(length), int(stored)) for length, stored in tshark(file, "tcp", "frame.len", "frame.cap_len")}
    assert (1514, 128) in lengths
    assert max(length for length, _ in lengths) == 1514


def test_the_same_run_gives_the_same_file(tmp_path: Path) -> None:
    run = simulated(tmp_path)
    first, second = (exported(run, tmp_path / name).read_bytes() for name in ("first", "second"))
    assert first == second


def test_a_run_of_another_build_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    run = simulated(tmp_path)
    totals(run)["events"] += 1
    with pytest.raises(InputError, match="came out differently"):
        exported(run, tmp_path / "export")
    assert list((tmp_path / "export").iterdir()) == []


def test_only_simulated_runs_can_be_repeated(tmp_path: Path) -> None:
    HandmadeRun(scenario({"bulk": TCP, "ping": PING}), {}, id="guest-s1", engine="guest").write(tmp_path / "results")
    (run,) = find_anywhere(tmp_path / "results")
    with pytest.raises(InputError, match="made by the engine guest"):
        export_packets([run], tmp_path / "export")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--port", "h1>h3"], "--port: found 'h1>h3'; did you mean h1>h2"),
        (["--layer", "qdsic"], "--layer: found 'qdsic'; did you mean qdisc"),
        (["--layer", "ring"], "no port that was chosen has the layer ring"),
        (["--snaplen", "0"], "--snaplen: found 0"),
        (["--table", "flows"], "--table: found flows; allowed with --format pcapng: none"),
    ],
)
def test_wrong_options_are_refused(cli: Cli, tmp_path: Path, arguments: list[str], message: str) -> None:
    simulated(tmp_path)
    answer = cli("export", "results", "--format", "pcapng", *arguments)
    assert answer.status == 2
    assert message in " ".join(answer.err.split())
    assert not (tmp_path / "export").exists()


def test_ports_are_only_for_packets(cli: Cli, tmp_path: Path) -> None:
    simulated(tmp_path)
    assert cli("export", "results", "--port", "h1>h2").status == 2


def test_every_layer_is_explained() -> None:
    page = (Path(__file__).parents[2] / "docs" / "captures-of-runs.md").read_text()
    for layer in LAYERS:
        assert f"| `{layer}` |" in page
