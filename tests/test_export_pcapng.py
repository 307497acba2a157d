"""Packets of simulated runs as pcapng files, read by tshark."""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest
from handmade import PING, TCP, HandmadeRun, scenario
from laboratory import SMALL, Answer, program, write

import bufferscope as bs
from bufferscope.errors import InputError
from bufferscope.packets import LAYERS, export_packets
from bufferscope.store.finding import find_anywhere
from bufferscope.store.run import Run

Cli = Callable[..., Answer]
RETRANSMITTED = (
    "tcp.analysis.retransmission || tcp.analysis.fast_retransmission || tcp.analysis.spurious_retransmission"
)
CHECKED = [f"{protocol}.check_checksum:TRUE" for protocol in ("tcp", "ip", "udp")]

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


def tshark(file: Path, shown: str, *fields: str) -> list[list[str]]:
    """The fields of the packets that pass a display filter."""
    options = [word for check in CHECKED for word in ("-o", check)]
    wanted = [word for field in fields for word in ("-e", field)]
    command = [program("tshark"), "-r", str(file), *options, "-Y", shown, "-T", "fields", *wanted]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert "error" not in answer.stderr.lower(), answer.stderr
    return [line.split("\t") for line in answer.stdout.splitlines()]


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


@pytest.mark.parametrize(
    "changes",
    [
        [],
        ["traffic.bulk.congestion=cubic", "link.line.queue.limit=200p", "duration=10s"],
        ["traffic.bulk.congestion=bbr", "link.line.queue.limit=10p"],
        ['link.line.queue={ qdisc = "fq_codel" }', "duration=5s"],
        ['link.line.wire={ loss = "1%" }', "duration=5s"],
    ],
    ids=["reno", "cubic-large", "bbr-small", "fq_codel", "lossy"],
)
def test_tshark_finds_the_retransmissions_that_the_records_have(tmp_path: Path, changes: list[str]) -> None:
    run = simulated(tmp_path, changes=changes)
    # The whole path is one link, so this is what tcpdump on the sending host would see.
    sent = exported(run, tmp_path / "sent", ports=["h1>h2"], layers=["qdisc"])
    # The last sample is taken at the duration. The run goes on until the last ping is answered.
    during = f"frame.time_epoch < {run.scenario['duration_ns'] / 1e9}"
    found = tshark(sent, f"({RETRANSMITTED}) && {during}", "frame.number")
    # tshark takes a segment that follows a later one within the round-trip time for out of order.
    late = tshark(sent, f"tcp.analysis.out_of_order && {during}", "frame.number")
    assert len(found) + len(late) == retransmits(run) > 0


def test_tshark_has_nothing_to_complain_about(tmp_path: Path) -> None:
    run = simulated(tmp_path, SMALL + DATAGRAMS)
    for layer in ("qdisc", "wire", "arrived"):
        file = exported(run, tmp_path / layer, layers=[layer], snaplen=2000)
        assert tshark(file, "_ws.malformed || _ws.expert.severity >= 0x00800000", "frame.number") == []
        bad = "ip.checksum.status == 0 || tcp.checksum.status == 0 || udp.checksum.status == 0"
        assert tshark(file, bad, "frame.number") == []
        assert tshark(file, "tcp.checksum.status == 1", "frame.number"), "tshark has verified checksums"
        assert {protocol for (protocol,) in tshark(file, "ip", "ip.proto")} == {"1", "6", "17"}


def test_each_port_and_layer_is_an_interface(tmp_path: Path) -> None:
    run = simulated(tmp_path)
    names = {name for (name,) in tshark(exported(run, tmp_path / "all"), "frame", "frame.interface_name")}
    assert names == {
        *(f"h1>h2 {layer}" for layer in ("qdisc", "wire", "arrived", "dropped")),
        *(f"h2>h1 {layer}" for layer in ("qdisc", "wire", "arrived")),
    }


def test_dropped_packets_say_why(tmp_path: Path) -> None:
    run = simulated(tmp_path)
    rows = tshark(exported(run, tmp_path / "drops", layers=["dropped"]), "frame", "frame.comment", "frame.time_epoch")
    assert len(rows) == run.drops.height > 0
    assert {comment for comment, _ in rows} == {f"dropped: {reason}" for reason in run.drops["reason"].unique()}
    times = [round(float(time.split(".")[0])) * 10**9 + int(time.split(".")[1]) for _, time in rows]
    assert times == run.drops["t_ns"].to_list()


def test_marks_are_seen_on_the_wire(tmp_path: Path) -> None:
    marking = ['link.line.queue={ qdisc = "codel", ecn = true }', "traffic.bulk.ecn=true", "duration=5s"]
    run = simulated(tmp_path, changes=marking)
    file = exported(run, tmp_path / "wire", ports=["h1>h2"], layers=["wire"])
    marks = tshark(file, "ip.dsfield.ecn == 3", "frame.number")
    assert len(marks) == totals(run)["ports"][0]["marked"] > 0


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
        (["--table", "flows"], "--table: a pcapng file has packets"),
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
    page = (Path(__file__).parents[1] / "docs" / "captures-of-runs.md").read_text()
    for layer in LAYERS:
        assert f"| `{layer}` |" in page
