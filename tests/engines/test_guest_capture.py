"""Captures of a guest's kernel: what it carried, packet by packet, against its own records."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from guests import build_guest
from laboratory import ROUTED, SMALL, Answer, tshark, write

import bufferscope as bs
from bufferscope.base.errors import InputError
from bufferscope.interop.inspection.inspecting import Inspection, inspect
from bufferscope.interop.packets.exporting import capture_of, export_packets
from bufferscope.store.run import Run

pytestmark = pytest.mark.guest

Cli = Callable[..., Answer]
LONGER = ROUTED.replace('duration = "2s"', 'duration = "8s"')
CASES = {
    "reno": [],
    "cubic": ["traffic.bulk.congestion=cubic", "link.line.queue.limit=40p"],
    "bbr": ["traffic.bulk.congestion=bbr", "link.line.queue.limit=6p"],
}


@pytest.fixture(scope="module", params=CASES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of a guest with the packets that its kernel carried."""
    build_guest()
    directory = tmp_path_factory.mktemp(request.param)
    result = bs.run(
        write(directory, LONGER), CASES[request.param], engine="guest", capture=True, out=directory / "results"
    )
    (run,) = result.runs
    return run


@pytest.fixture(scope="module")
def seen(run: Run) -> Inspection:
    """What the capture at the sending host shows."""
    (file,) = export_packets([run], run.path / "sender")
    return inspect([file], run.path / "inspected")


def total(run: Run, column: str) -> int:
    """What the kernel had counted at the end of the run."""
    return int(run.flows.sort("t_ns")[column][-1])


def during(run: Run, seen: Inspection) -> int:
    """The end of the run, on the clock of what its capture shows."""
    return run.scenario["duration_ns"] - int(seen.summary["first_ns"])


def test_every_retransmission_of_the_kernel_is_found(run: Run, seen: Inspection) -> None:
    found = seen.run.retransmissions.filter(pl.col("t_ns") <= during(run, seen))
    assert found.height == total(run, "retransmits") > 0


def smoothed(file: Path) -> pl.DataFrame:
    """The sender's smoothed round-trip time, from its packets, in the way of Linux (`tcp_clean_rtx_queue`).

    A measurement is that of the oldest segment that an acknowledgement newly confirms; ours are those of the newest,
    which say more of the path, because the receiver did not wait for another one before it answered. Segments that were
    sent again give none; without others, the oldest that is newly in a block of SACK counts.
    """
    (sender,) = tshark(file, "tcp.flags.syn == 1 && tcp.flags.ack == 0", "ip.src")
    fields = ["frame.time_epoch", "ip.src", "tcp.seq", "tcp.len", "tcp.ack", "tcp.options.sack_le"]
    sent: dict[int, tuple[float, int]] = {}
    again: set[int] = set()
    sacked: set[int] = set()
    rows: list[tuple[int, float]] = []
    for time, source, seq, length, ack, starts, ends in tshark(file, "tcp", *fields, "tcp.options.sack_re"):
        t_ns = float(time) * 1e9
        if [source] == sender:
            if int(seq) in sent:
                again.add(int(seq))
            elif int(length):
                sent[int(seq)] = (t_ns, int(seq) + int(length))
            continue
        blocks = [(int(a), int(b)) for a, b in zip(starts.split(","), ends.split(","), strict=True) if starts]
        done = sorted(each for each, (_, end) in sent.items() if end <= int(ack))
        held = sorted(
            each
            for each, (_, end) in sent.items()
            if end > int(ack) and each not in sacked and any(a <= each and end <= b for a, b in blocks)
        )
        direct = [] if again & set(done) else [each for each in done if each not in sacked]
        counting = direct or [each for each in held if each not in again]
        if counting:
            measured = t_ns - sent[counting[0]][0]
            before = rows[-1][1] if rows else measured
            rows.append((round(t_ns), before + (measured - before) / 8))
        sacked.update(held)
        for each in done:
            del sent[each]
    return pl.DataFrame(rows, schema={"t_ns": pl.Int64, "ours_ns": pl.Float64}, orient="row")


def test_round_trips_are_those_that_the_kernel_measured(run: Run) -> None:
    (file,) = export_packets([run], run.path / "smoothed")
    kernel = run.flows.select("t_ns", "srtt_ns").sort("t_ns")
    both = kernel.join_asof(smoothed(file), on="t_ns", strategy="backward").drop_nulls()
    off = (both["ours_ns"] / both["srtt_ns"] - 1).abs().to_numpy()
    assert both.height > 0.9 * kernel.height
    assert np.median(off) < 0.003
    # The smoothing above leaves out what happens in the kernel while it repairs losses.
    assert (off < 0.01).mean() > 0.8


def test_the_goodput_is_that_of_the_kernel(run: Run, seen: Inspection) -> None:
    flows = seen.run.flows.filter(pl.col("t_ns") <= during(run, seen)).sort("t_ns")
    assert flows["delivered_bytes"][-1] == pytest.approx(total(run, "delivered_bytes"), rel=0.01)


def test_what_leaves_a_queue_is_what_its_counters_say(run: Run) -> None:
    (file,) = export_packets([run], run.path / "queue", ports=["r1>h2"], layers=["wire", "arrived"])
    (last,) = run.queues.filter(port="r1>h2").sort("t_ns").tail(1).iter_rows(named=True)
    end = f"frame.time_epoch <= {last['t_ns'] / 1e9}"
    left = tshark(file, f'frame.interface_name == "r1>h2 wire" && {end}', "frame.len")
    # A capture counts a packet when the shaper hands it on, and the counter when it leaves the discipline inside.
    assert abs(len(left) - last["sent_packets"]) <= 1
    arrived = tshark(file, 'frame.interface_name == "r1>h2 arrived"', "frame.time_epoch")
    times = [float(time) for (time,) in arrived]
    assert times == sorted(times)
    assert abs(len(arrived) - len(tshark(file, 'frame.interface_name == "r1>h2 wire"', "frame.len"))) <= 40


def test_the_file_of_a_run_is_complete_and_says_so(run: Run) -> None:
    capture = run.meta["summary"]["capture"]
    assert capture["missed"] == 0
    assert capture["packets"] == len(tshark(capture_of(run), "frame", "frame.len"))


def test_only_places_that_a_kernel_sees_can_be_exported(run: Run, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no port that was chosen has the layer qdisc; there is: wire, arrived"):
        export_packets([run], tmp_path, ports=["r1>h2"], layers=["qdisc"])


def test_a_damaged_capture_is_refused(run: Run, tmp_path: Path) -> None:
    copy = tmp_path / run.id
    shutil.copytree(run.path, copy)
    capture = copy / "capture.pcapng"
    capture.write_bytes(capture.read_bytes()[:5000])
    with pytest.raises(InputError, match=r"capture\.pcapng: damaged"):
        export_packets([Run(copy)], tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_run_without_a_capture_says_how_to_make_one(tmp_path: Path) -> None:
    build_guest()
    experiment = write(tmp_path, SMALL)
    (run,) = bs.run(experiment, engine="guest", out=tmp_path).runs
    with pytest.raises(InputError, match=r"without a capture .* --engine guest --capture"):
        export_packets([run], tmp_path / "out")
    (again,) = bs.run(experiment, engine="guest", out=tmp_path, reuse=True, capture=True).runs
    assert capture_of(again).exists()
    assert again.meta["started"] >= run.meta["started"]
    (reused,) = bs.run(experiment, engine="guest", out=tmp_path, reuse=True, capture=True).runs
    assert reused.meta == again.meta


def test_the_command_line_captures_and_exports(cli: Cli, tmp_path: Path) -> None:
    build_guest()
    experiment = str(write(tmp_path, SMALL))
    answer = cli("run", experiment, "--engine", "guest", "--capture", "--quiet")
    assert answer.status == 0, answer.err
    assert cli("export", "results", "--format", "pcapng", "--quiet").status == 0
    (file,) = (tmp_path / "export").iterdir()
    assert {name for (name,) in tshark(file, "frame", "frame.interface_name")} == {"h1>h2 wire", "h2>h1 arrived"}


def test_the_simulator_needs_no_capture_and_a_cluster_sends_none(tmp_path: Path) -> None:
    experiment = write(tmp_path, SMALL)
    with pytest.raises(InputError, match="capture: engine is sim, whose packets need no capture"):
        bs.run(experiment, capture=True, out=tmp_path)
    with pytest.raises(InputError, match="capture: not with cluster"):
        bs.run(experiment, engine="guest", capture=True, cluster="local:1", out=tmp_path)
