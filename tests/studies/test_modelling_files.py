"""`bufferscope model` on files of other programs, made of simulated runs of a line that is known."""

import json
from collections.abc import Callable
from pathlib import Path

import flentfiles
import pytest
from laboratory import Answer

import bufferscope as bs
from bufferscope.base.errors import InputError
from bufferscope.interop import flent
from bufferscope.interop.measured_lines import measured_line
from bufferscope.interop.packets import exporting
from bufferscope.store.run import Run
from bufferscope.studies.modelling.fitting import fit
from bufferscope.studies.modelling.others import GivenRates, given_rates, of_other

Cli = Callable[..., Answer]
HOME = """
title = "A home"
duration = "10s"
warmup = "2s"
[[link]]
name = "lan"
ends = ["laptop", "router"]
rate = "1gbit"
[[link]]
name = "line"
ends = ["router", "isp"]
forward = {{ rate = "8mbit", queue = {{ qdisc = "pfifo", limit = "120p" }} }}
reverse = {{ rate = "20mbit", queue = {{ qdisc = "{qdisc}", limit = "{limit}" }} }}
[[link]]
name = "far"
ends = ["isp", "server"]
rate = "1gbit"
delay = "12ms"
[[traffic]]
name = "ping"
kind = "ping"
from = "laptop"
to = "server"
interval = "100ms"
"""
LOAD = """
[[traffic]]
name = "{name}"
kind = "tcp"
from = "{ends[0]}"
to = "{ends[1]}"
flows = 3
start = "2s"
"""
ENDS = {"up": ("laptop", "server"), "down": ("server", "laptop")}
PLANTED = {"up": (8e6, 120 * 1514), "down": (20e6, 200_000)}
RTT_MS = 24
CLOSE = 0.1


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Tests of a line: of each direction, of both, and of one with flow queueing."""
    directory = tmp_path_factory.mktemp("runs")
    found = {}
    for name, ways in (("up", ("up",)), ("down", ("down",)), ("both", ("down", "up")), ("managed", ("down",))):
        queue = ("fq_codel", "1000p") if name == "managed" else ("bfifo", "200000b")
        text = HOME.format(qdisc=queue[0], limit=queue[1]) + "".join(
            LOAD.format(name=f"load{way}", ends=ENDS[way]) for way in ways
        )
        (directory / f"{name}.toml").write_text(text)
        (found[name],) = bs.run(directory / f"{name}.toml", out=directory / "results").runs
    return found


@pytest.fixture
def as_flent(runs: dict[str, Run], tmp_path: Path) -> Callable[[str], Path]:
    """A test as a file of Flent."""

    def write(name: str) -> Path:
        flent.write(runs[name], tmp_path / f"{name}.flent.gz")
        return tmp_path / f"{name}.flent.gz"

    return write


def ping_log(run: Run, file: Path) -> Path:
    """The pings of a run, as `ping -D` prints them."""
    lines = ["PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data."]
    for seq, sent_ns, rtt_ns in run.probes.select("seq", "sent_ns", "rtt_ns").drop_nulls().iter_rows():
        arrived = 1_767_225_600 + (sent_ns + rtt_ns) / 1e9
        lines.append(f"[{arrived:.6f}] 64 bytes from 192.0.2.1: icmp_seq={seq + 1} ttl=57 time={rtt_ns / 1e6:.4g} ms")
    file.write_text("\n".join(lines) + "\n")
    return file


def test_a_file_of_flent_shows_a_direction(as_flent: Callable[[str], Path], tmp_path: Path) -> None:
    line, _ = measured_line([as_flent("down")], tmp_path / "results")
    fitted = fit(line)
    assert fitted.fits
    assert line.rtt_ns == pytest.approx(RTT_MS * 1e6, rel=0.02)
    assert list(line.directions) == ["down"]
    queue = fitted.model.queues["down"]
    assert (queue.rate_bps, queue.limit_bytes) == pytest.approx(PLANTED["down"], rel=CLOSE)
    assert any("was not measured under load" in note for note in fitted.notes)
    assert any("congestion control is not known" in note for note in fitted.notes)


def test_both_directions_at_once_show_no_queue_of_their_own(as_flent: Callable[[str], Path], tmp_path: Path) -> None:
    line, _ = measured_line([as_flent("both")], tmp_path / "results")
    fitted = fit(line)
    assert not fitted.fits
    assert all(queue.limit_bytes is None and not queue.is_known for queue in fitted.model.queues.values())
    assert sum("shows only the sum of their delays" in note for note in fitted.notes) == 1


def test_three_files_show_the_whole_line(cli: Cli, as_flent: Callable[[str], Path]) -> None:
    # The acknowledgements of the download fill the upload's queue, whose limit is in packets, and no other.
    answer = cli("model", *(str(as_flent(name)) for name in ("up", "down", "both")), "--json")
    assert answer.status == 0, answer.err
    found = json.loads(answer.out)
    assert [phase["phase"] for phase in found["phases"]] == ["download", "upload", "both"]
    assert found["directions"]["up"]["limit_packets"] == pytest.approx(120, rel=CLOSE)
    assert found["shaped"]["rtt_p95_ms"] < 40 < found["shaped"]["before"]["rtt_p95_ms"]


def test_it_says_what_a_call_would_gain(cli: Cli, as_flent: Callable[[str], Path]) -> None:
    said = cli("model", str(as_flent("up"))).out
    assert "With cake on the router at 7." in said
    assert "a call during this upload would take" in said


def test_a_queue_with_flow_queueing_is_found(runs: dict[str, Run], tmp_path: Path) -> None:
    fitted = fit(of_other(runs["managed"]))
    assert fitted.fits
    queue = fitted.model.queues["down"]
    assert (queue.qdisc, queue.is_known) == ("fq_codel", True)


@pytest.mark.parametrize("ports", [(), ("isp>server", "server>isp")], ids=["at the sender", "at the receiver"])
def test_a_capture_shows_a_direction(ports: tuple[str, ...], runs: dict[str, Run], tmp_path: Path) -> None:
    exporting.export_packets([runs["up"]], tmp_path, ports=ports)
    (file,) = tmp_path.glob("*.pcapng")
    line, _ = measured_line([file], tmp_path / "results")
    fitted = fit(line)
    assert fitted.fits
    (queue,) = (fitted.model.queues[way] for way in line.directions)
    assert (queue.rate_bps, queue.limit_bytes) == pytest.approx(PLANTED["up"], rel=CLOSE)
    assert any("no separate probes" in note for note in fitted.notes)
    assert any("is taken for the server" in note for note in fitted.notes)


def test_a_log_of_ping_needs_rates(cli: Cli, runs: dict[str, Run], tmp_path: Path) -> None:
    log = str(ping_log(runs["up"], tmp_path / "evening.txt"))
    answer = cli("model", log, "--up", "8", "--json")
    assert answer.status == 0, answer.err
    found = json.loads(answer.out)
    assert found["directions"]["up"]["limit_bytes"] == pytest.approx(PLANTED["up"][1], rel=CLOSE)
    assert found["phases"][0]["measured"]["goodput_mbit"] == {}
    assert found["rtt_ms"] == pytest.approx(RTT_MS, rel=0.02)
    for arguments, says in (
        ((), "found only round trips"),
        (("--up", "8", "--down", "40"), "do not show which direction was loaded"),
        (("--up", "8", "--phase", "download"), "do not show which direction was loaded"),
        (("--up", "nan"), "--up: found nan"),
        (("--up", "-3"), "--up: found -3"),
    ):
        answer = cli("model", log, *arguments)
        assert (answer.status, says in answer.err) == (2, True), answer.err


def test_rates_are_not_given_twice(cli: Cli, as_flent: Callable[[str], Path]) -> None:
    assert "for files without them" in cli("model", str(as_flent("up")), "--up", "8").err


def test_wrong_files_are_refused(cli: Cli, tmp_path: Path) -> None:
    short = flentfiles.content("tcp_download", {"TCP download": flentfiles.rates(8)})
    cut = tmp_path / "cut.pcap.gz"
    cut.write_bytes(b"\x1f\x8b\x08\x00")
    damaged = tmp_path / "damaged.pcap.gz"
    damaged.write_bytes(b"\x1f\x8b\x08\x00\0\0\0\0\0\x03" + b"\xff" * 50)
    for path, says in (
        (flentfiles.write(tmp_path, short), "found no round trip"),
        (cut, "cut.pcap.gz"),
        (damaged, "damaged.pcap.gz"),
        (tmp_path / "nothing", "no such directory"),
    ):
        answer = cli("model", str(path))
        assert (answer.status, answer.out) == (2, ""), path
        assert says in answer.err


def test_given_rates_are_checked() -> None:
    assert given_rates(None, None) is None
    assert given_rates(50, 10, "upload") == GivenRates({"down": 50, "up": 10}, "upload")
    with pytest.raises(InputError, match="allowed"):
        given_rates(float("inf"), None)


def test_it_is_the_same_from_python(as_flent: Callable[[str], Path], tmp_path: Path) -> None:
    fitted = bs.model_line(as_flent("up"), out=tmp_path / "results")
    assert fitted.fits
    assert 'qdisc = "' in fitted.experiment("upload")
    assert fitted.phase().kind == "upload"
    with pytest.raises(InputError, match="was not measured"):
        fitted.experiment("both")
    with pytest.raises(InputError, match="up_mbit"):
        bs.model_line(as_flent("up"), up_mbit=8, out=tmp_path / "results")
    with pytest.raises(InputError, match="measurements"):
        bs.model_line(5)  # type: ignore[arg-type]


def test_a_file_of_a_year_takes_no_more_memory(tmp_path: Path) -> None:
    content = flentfiles.content(
        "tcp_download", {"TCP download": flentfiles.rates(8), "Ping (ms) ICMP": flentfiles.pings(20, 80)}
    )
    content["raw_values"]["TCP download"][-1]["t"] += 360 * 86_400
    line, _ = measured_line([flentfiles.write(tmp_path, content)], tmp_path / "results")
    assert line.phases[0].load_s == 30
    assert len(line.directions["down"].steps) <= 30
