"""`bufferscope inspect` on the packets of simulated runs: what it finds, what the simulator knows, what tshark says.

The capture is that of the sending host: what it sends, and what arrives there, as two interfaces of one file.
"""

import re
import struct
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from dumbbell import dumbbell, pfifo
from laboratory import program, write

import bufferscope as bs
from bufferscope.interop.inspection.connections import Connection, connections
from bufferscope.interop.inspection.inspecting import Inspection, inspect
from bufferscope.interop.packets.exporting import export_packets
from bufferscope.store.finding import find_anywhere
from bufferscope.store.run import Run

LAB = dumbbell(
    "A path between two hosts",
    "8s",
    sojourns="packets",
    access={"rate": "1gbit", "delay": "1ms"},
    bottleneck={"name": "line", "delay": "9ms", "queue": pfifo(60)},
    bulk={"congestion": "reno"},
    ping={"interval": None},
)
CASES = {
    "reno": [],
    "cubic": ["traffic.bulk.congestion=cubic", "link.line.queue.limit=100p"],
    "bbr": ["traffic.bulk.congestion=bbr"],
    "bbr-small-buffer": ["traffic.bulk.congestion=bbr", "link.line.queue.limit=10p"],
    "small-buffer": ["link.line.queue.limit=5p"],
    "lossy": ["link.line.wire={ loss = 0.01 }"],
    "ecn": ['link.line.queue={ qdisc = "fq_codel", ecn = true }', "traffic.bulk.ecn=true"],
}
DATA_MS = 1514 * 8 / 10_000
"""A full frame on the line."""
ACK_MS = 66 * 8 / 10_000
BACK_MS = DATA_MS + 9 + ACK_MS + 9 + 1
"""From the moment at which a packet leaves the queue until its acknowledgement is back at the sender."""
PATH_MS = 1 + 1514 * 8 / 1_000_000 + BACK_MS
"""A round trip that waits nowhere."""
MS = 1e6
ENHANCED_PACKET = 6
"""The type of pcapng's blocks with a packet."""
SENDER = {"ports": ["h1>r1", "r1>h1"], "layers": ["wire", "arrived"]}
RECEIVER = {"ports": ["r1>h2", "h2>r1"], "layers": ["wire", "arrived"]}


@dataclass(frozen=True)
class Seen:
    """A run, the file of its packets at the sender, and what that shows."""

    run: Run
    file: Path
    found: Inspection

    @property
    def flow(self) -> Connection:
        (flow,) = connections(self.found.run, self.found.summary)
        return flow

    @property
    def start_ns(self) -> int:
        """The time of the first packet in the run."""
        return int(self.found.summary["first_ns"])


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the capture of a case shows; each is made once."""

    @cache
    def look(case: str) -> Seen:
        directory = tmp_path_factory.mktemp(case)
        bs.run(write(directory, LAB), CASES[case], out=directory / "results")
        (run,) = find_anywhere(directory / "results")
        (file,) = export_packets([run], directory / "sender", **SENDER)  # type: ignore[arg-type]
        return Seen(run, file, inspect([file], directory / "inspected"))

    return look


def only(file: Path, *interfaces: str) -> Path:
    """The packets of these interfaces."""
    chosen = file.with_name("chosen.pcapng")
    shown = " || ".join(f'frame.interface_name == "{name}"' for name in interfaces)
    command = [program("tshark"), "-r", str(file), "-Y", shown, "-w", str(chosen)]
    subprocess.run(command, check=True, capture_output=True)
    return chosen


def total(run: Run, column: str) -> int:
    """What the sender counted until the end of the run."""
    return int(run.flows.filter(flow="bulk/1").sort("t_ns")[column][-1])


@pytest.mark.parametrize("case", CASES)
def test_every_retransmission_is_found(seen: Any, case: str) -> None:
    of = seen(case)
    end_ns = of.run.scenario["duration_ns"] - of.start_ns
    found = of.found.run.retransmissions.filter(pl.col("t_ns") <= end_ns)
    assert found.height == total(of.run, "retransmits")
    assert (found.height > 0) == (case not in ("bbr", "ecn"))


@pytest.mark.parametrize("case", CASES)
def test_the_goodput_is_that_of_the_sender(seen: Any, case: str) -> None:
    of = seen(case)
    end_ns = of.run.scenario["duration_ns"] - of.start_ns
    last = of.found.run.flows.filter(pl.col("t_ns") <= end_ns).sort("t_ns")["delivered_bytes"][-1]
    assert last == pytest.approx(total(of.run, "delivered_bytes"), rel=0.01)


@pytest.mark.parametrize("case", CASES)
def test_each_round_trip_is_the_path_and_the_wait_in_the_queue(seen: Any, case: str) -> None:
    of = seen(case)
    trips = of.found.run.round_trips.filter(half="receiver", method="acknowledgement").select("t_ns", "rtt_ns")
    ideal = (pl.col("t_ns") + of.start_ns - round(BACK_MS * MS)).alias("t_ns")
    queue = of.run.sojourns.filter(port="r1>h2", layer="qdisc").sort("t_ns")
    left = queue.select("t_ns", "sojourn_ns", pl.col("t_ns").alias("left_ns"))
    both = trips.select(ideal, "rtt_ns").sort("t_ns")
    # The last packet that had left the queue. While it lacks a segment, the receiver puts acknowledgements together
    # for up to 1 ms, as Linux does; without losses only a ping on the line holds one up.
    both = both.join_asof(left, on="t_ns", strategy="backward", tolerance=round(DATA_MS * MS)).drop_nulls()
    assert both.height > 0.95 * trips.height > 1000
    late_ms = (both["t_ns"] - both["left_ns"]).to_numpy() / MS
    assert of.flow.retransmissions or (late_ms < 0.1).mean() > 0.99
    true_ms = PATH_MS + both["sojourn_ns"].to_numpy() / MS + late_ms
    off = abs(both["rtt_ns"].to_numpy() / MS / true_ms - 1)
    assert (off < 0.01).mean() > 0.99


@pytest.mark.parametrize("case", ["reno", "lossy", "ecn", "bbr-small-buffer"])
def test_tshark_agrees(seen: Any, case: str) -> None:
    of = seen(case)
    command = [program("tshark"), "-r", str(of.file), "-T", "fields"]
    command += ["-e", "frame.time_epoch", "-e", "tcp.analysis.ack_rtt", "-e", "tcp.analysis.retransmission"]
    command[2] = str(only(of.file, "h1>r1 wire", "r1>h1 arrived"))
    command += ["-e", "tcp.analysis.out_of_order", "-e", "ip.src", "-Y", "tcp"]
    rows = [line.split("\t") for line in subprocess.check_output(command, text=True).splitlines()]
    again = [row for row in rows if row[2] or row[3]]
    # tshark takes a segment that follows a later one within the round-trip time for out of order.
    assert len(again) == of.found.run.retransmissions.height
    answers = [
        (round(float(row[0]) * 1e9), round(float(row[1]) * 1e9)) for row in rows if row[1] and row[4] != "10.0.0.1"
    ]
    theirs = pl.DataFrame(answers, schema={"t_ns": pl.Int64, "theirs_ns": pl.Int64}, orient="row")
    ours = of.found.run.round_trips.filter(half="receiver", method="acknowledgement")
    both = theirs.with_columns(pl.col("t_ns") - of.start_ns).join(ours, on="t_ns")
    # Without losses they are the same. tshark also takes segments that waited at the receiver for a repair, which tell
    # more than the path; and none that only a block of SACK acknowledges.
    assert both.height > 0.95 * theirs.height
    assert ((both["theirs_ns"] - both["rtt_ns"]).abs() < 1000).mean() > 0.99  # type: ignore[operator]


def test_both_ends_show_how_the_wait_in_the_queue_changes(seen: Any, tmp_path: Path) -> None:
    of = seen("reno")
    (far,) = export_packets([of.run], tmp_path / "far", **RECEIVER)  # type: ignore[arg-type]
    near, far = only(of.file, "h1>r1 wire", "r1>h1 arrived"), only(far, "r1>h2 arrived", "h2>r1 wire")
    found = inspect([near, far], tmp_path / "inspected")
    data = found.run.one_way.filter(way="data").sort("t_ns")
    queue = of.run.sojourns.filter(port="r1>h2", layer="qdisc")
    # A row has the time at which the packet passed the sender; it enters the queue when it has passed the first link.
    entered = queue.select((pl.col("t_ns") - pl.col("sojourn_ns")).alias("t_ns"), "sojourn_ns").sort("t_ns")
    first_link = round((1 + 1514 * 8 / 1_000_000) * MS)
    both = data.with_columns(pl.col("t_ns") + int(found.summary["first_ns"]) + first_link).sort("t_ns")
    both = both.join_asof(entered, on="t_ns", strategy="nearest", tolerance=50_000).drop_nulls()
    assert both.height > 500
    change_ms, wait_ms = (both[column].to_numpy() / MS for column in ("change_ns", "sojourn_ns"))
    # The smallest delay is that of the handshake, whose packets are short on the line.
    assert abs(change_ms - wait_ms - DATA_MS).max() < 0.1 * DATA_MS + 0.01 * wait_ms.max()


def faster(file: Path, ppm: float) -> Path:
    """The same capture by a clock that gains so many parts per million since 1970."""
    content, at = bytearray(file.read_bytes()), 0
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        if kind == ENHANCED_PACKET:
            high, low = struct.unpack_from("<II", content, at + 12)
            t_ns = (high << 32) + low
            t_ns += round(t_ns * ppm * 1e-6)
            struct.pack_into("<II", content, at + 12, t_ns >> 32, t_ns & 0xFFFFFFFF)
        at += length
    changed = file.with_name("faster.pcapng")
    changed.write_bytes(content)
    return changed


def test_a_clock_that_runs_faster_does_not_change_one_way_delays(tmp_path: Path) -> None:
    bs.run(write(tmp_path, LAB), ["duration=20s"], out=tmp_path / "results")
    (run,) = find_anywhere(tmp_path / "results")
    (near,) = export_packets([run], tmp_path / "near", **SENDER)  # type: ignore[arg-type]
    (far,) = export_packets([run], tmp_path / "far", **RECEIVER)  # type: ignore[arg-type]
    near, far = only(near, "h1>r1 wire", "r1>h1 arrived"), only(far, "r1>h2 arrived", "h2>r1 wire")
    true = inspect([near, far], tmp_path / "true").run
    assert not any("clocks" in warning for warning in true.warnings)
    found = inspect([near, faster(far, 40)], tmp_path / "found").run
    (told,) = [warning for warning in found.warnings if "clocks" in warning]
    (ppm,) = re.findall(r"drift by ([0-9.]+) parts per million", told)
    assert float(ppm) == pytest.approx(40, rel=0.02)
    for way in ("data", "acknowledgements"):
        rows = [each.one_way.filter(way=way).sort("t_ns")["change_ns"].to_numpy() for each in (true, found)]
        assert len(rows[0]) == len(rows[1]) > 1000
        # 40 parts per million are 0.8 ms in 20 s.
        assert abs(rows[0] - rows[1]).max() < 0.02 * MS
