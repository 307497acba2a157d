"""The guest engine, for real: QEMU, a Debian kernel, and what virtual time promises.

The first test that needs the guest fetches a kernel and boots it, unless an earlier run of the tests did.
"""

import functools
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from guests import ROUTED, Carry, build_guest, busy_machine, carried, point
from laboratory import IDLE, SMALL, TABLES, start, write

import bufferscope as bs
from bufferscope import _core
from bufferscope.base.errors import EngineError
from bufferscope.engines import agent
from bufferscope.engines.guest import cache, hardware, image, kernels, run, state
from bufferscope.engines.guest import engine as guest
from bufferscope.engines.guest.image import Image

pytestmark = pytest.mark.guest

CHANCE = SMALL.replace('{ qdisc = "pfifo", limit = "20p" }', '{ qdisc = "red", limit = "60kb", avpkt = "1000b" }')
"""The small lab with a queue that draws random numbers."""


Alone = Callable[[int], dict[str, bytes]]


@pytest.fixture(scope="session")
def built() -> Image:
    return build_guest()


@pytest.fixture
def carry(tmp_path: Path, built: Image) -> Carry:
    """Runs an experiment's text with a seed; gives its tables' bytes."""
    return lambda text, seed=1: carried(text, tmp_path, seed)


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory, built: Image) -> Alone:
    """The tables' bytes of an undisturbed run of CHANCE with a seed; each is made once for all tests."""
    return functools.cache(lambda seed: carried(CHANCE, tmp_path_factory.mktemp("alone"), seed))


def test_the_same_seed_gives_the_same_bytes_whatever_else_the_machine_does(alone: Alone, carry: Carry) -> None:
    with busy_machine():
        loaded = carry(CHANCE)
    again = carry(CHANCE)
    assert alone(1) == loaded == again


def test_another_seed_gives_other_records(alone: Alone) -> None:
    assert alone(1)["queues"] != alone(2)["queues"]


def test_runs_side_by_side_give_what_they_give_alone(tmp_path: Path, built: Image, alone: Alone) -> None:
    result = bs.run(write(tmp_path, CHANCE), engine="guest", seed=1, repeat=2, jobs=2, out=tmp_path / "out")
    for each in result.runs:
        assert {table: (each.path / f"{table}.parquet").read_bytes() for table in TABLES} == alone(each.seed)


def test_a_state_saved_anew_gives_the_same_records(
    tmp_path: Path, built: Image, alone: Alone, carry: Carry, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = alone(1)
    packages = cache.directory("packages")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cache.directory("packages").rmdir()
    (cache.root() / "packages").symlink_to(packages)
    guest._image.cache_clear()
    with busy_machine():
        after = carry(CHANCE)
    guest._image.cache_clear()
    assert before == after


def test_an_idle_path_is_as_long_as_its_delays(tmp_path: Path, built: Image) -> None:
    (each,) = bs.run(write(tmp_path, IDLE), engine="guest", out=tmp_path / "out").runs
    rtt_ns = each.probes["rtt_ns"].to_list()
    # Twice 10 ms and the 78.4 us that a frame of 98 bytes takes at 10 Mbit/s, and what the kernel's own instructions
    # take: under 0.1 ms, with no noise from this machine.
    assert 20_156_800 <= min(rtt_ns) <= max(rtt_ns) < 20_256_800


SATURATION = "a CPU was saturated for"
FAST = ROUTED.replace('"10mbit"', '"1gbit"').replace('"10ms"', '"1ms"').replace('"20p"', '"1000p"')
"""A gigabit needs more than the guest's 10⁹ instructions a second."""


def warnings_of(tmp_path: Path, text: str) -> tuple[list[str], float]:
    """A run's warnings, and how long its agent found the processor saturated."""
    (each,) = bs.run(write(tmp_path, text), engine="guest", out=tmp_path / "out").runs
    return each.warnings, each.meta["summary"]["cpu"]["saturated_s"]


def test_a_run_that_the_guests_processor_held_up_says_so(tmp_path: Path, built: Image) -> None:
    warnings, saturated_s = warnings_of(tmp_path, FAST.replace('"2s"', '"500ms"'))
    assert [warning for warning in warnings if warning.startswith(SATURATION)]
    # Of half a second, most; how much exactly depends on every instruction of the agent.
    assert saturated_s > 0.2


@pytest.mark.parametrize(("size", "said"), [("12mb", "between two samples"), ("25mb", SATURATION)])
def test_a_processor_that_is_saturated_for_a_moment_is_noticed(
    tmp_path: Path, built: Image, size: str, said: str
) -> None:
    # A tenth and two tenths of a second, of two.
    warnings, saturated_s = warnings_of(tmp_path, FAST.replace('"reno"', f'"reno"\nbytes = "{size}"'))
    assert [warning for warning in warnings if warning.startswith(said)]
    assert saturated_s < 0.5


def test_a_processor_that_has_time_to_spare_is_no_matter(tmp_path: Path, built: Image) -> None:
    assert warnings_of(tmp_path, ROUTED) == ([], 0)
    assert warnings_of(tmp_path, ROUTED.replace('"10mbit"', '"50mbit"')) == ([], 0)


def test_a_processor_of_a_quarter_of_the_speed_gives_the_same_results(
    tmp_path: Path, built: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The kernel accounts for time at its ticks, every 4 ms. Samples at whole milliseconds can keep step with them, so
    # that every fourth tick or none meets the agent at work, and it seems to take 12 % of the time or nothing.
    path = write(tmp_path, 'sample = "9730us"\n' + ROUTED.replace('"2s"', '"8s"'))
    (usual,) = bs.run(path, engine="guest", out=tmp_path / "usual").runs
    of_time = hardware._time
    # An instruction takes 2^shift nanoseconds.
    monkeypatch.setattr(hardware, "_time", lambda icount: of_time(icount.replace("shift=0", "shift=2")))
    (slow,) = bs.run(path, engine="guest", out=tmp_path / "slow").runs
    busy = [each.meta["summary"]["cpu"]["busiest"] for each in (usual, slow)]
    # The cost of a run depends on its processor's work: thirty million instructions a second, of 10⁹.
    assert busy[0] < 0.05
    assert busy[1] > 2 * busy[0]
    # Between two and six of eighty pings are lost, so a 95th percentile may not exist.
    for metric, tolerance in {"rtt.p50_ms": 0.05, "rtt.mean_ms": 0.05, "goodput.total_mbit": 0.02}.items():
        assert slow.metrics[metric] == pytest.approx(usual.metrics[metric], rel=tolerance), metric


@pytest.mark.parametrize(("congestion", "paces"), [("bbr", True), ("cubic", False)])
def test_a_flow_that_is_paced_has_its_rate_recorded(tmp_path: Path, built: Image, congestion: str, paces: bool) -> None:
    (each,) = bs.run(write(tmp_path, SMALL.replace("reno", congestion)), engine="guest", out=tmp_path / "out").runs
    rates = each.flows["pacing_bps"].drop_nulls()
    assert rates.len() == (each.flows.height if paces else 0)
    if paces:
        # Most of the time BBR sends at the bandwidth that it has found, or at 1.25 times that.
        median = rates.median()
        assert isinstance(median, float)
        assert 9e6 < median < 12.5e6


def test_the_kernel_can_be_chosen_by_its_release(tmp_path: Path, built: Image) -> None:
    (each,) = bs.run(write(tmp_path, IDLE), engine="guest", kernel=built.release, out=tmp_path / "out").runs
    assert each.meta["summary"]["kernel"] == built.release
    with pytest.raises(EngineError, match=r"no kernel 2\.4 available \(found: .*6\..*guest build --kernel 2\.4"):
        bs.run(write(tmp_path, IDLE), engine="guest", kernel="2.4", out=tmp_path / "out")


def test_a_slot_of_the_senders_own_queue_holds_one_segment(tmp_path: Path, built: Image) -> None:
    # The bottleneck is the sender's own device, where TCP could hand down packets of several segments.
    (each,) = bs.run(write(tmp_path, SMALL), engine="guest", out=tmp_path / "out").runs
    standing = each.queues.filter((pl.col("port") == "h1>h2") & (pl.col("packets") > 0))
    assert standing.height > 100
    assert (standing["bytes"] / standing["packets"]).to_numpy().max() <= 1514


def test_a_run_says_on_what_it_ran(tmp_path: Path, built: Image) -> None:
    (each,) = bs.run(write(tmp_path, IDLE), engine="guest", out=tmp_path / "out").runs
    assert each.meta["summary"]["kernel"] == built.release == each.meta["summary"]["guest"]["release"]
    assert each.meta["summary"]["guest"]["qemu"].startswith("QEMU emulator version")
    assert each.meta["cpu_s"] == pytest.approx(each.meta["summary"]["guest"]["cpu_s"], abs=0.01)
    assert each.meta["sampling"]["achieved_ns"] == pytest.approx(10_000_000, rel=0.01)


@pytest.mark.parametrize(
    ("queue", "reasons"),
    [
        ('qdisc = "pfifo", limit = "20p"', {"overlimit"}),
        ('qdisc = "codel", limit = "20p"', {"overlimit", "codel"}),
        ('qdisc = "red", limit = "60kb", min = "3kb", max = "9kb", avpkt = "1000b"', {"red"}),
        (
            'qdisc = "choke", limit = "400p", min = "4p", max = "80p", probability = 0.0001, bandwidth = "10mbit"',
            {"choke_matched"},
        ),
        ('qdisc = "choke", limit = "20p", min = "18p", max = "19p", burst = 99, bandwidth = "10mbit"', {"overlimit"}),
        ('qdisc = "sfq", limit = "20p"', {"overlimit"}),
        ('qdisc = "pie", limit = "20p"', {"overlimit"}),
        ('qdisc = "pie", target = "1ms", tupdate = "4ms", alpha = 32, beta = 32', {"pie"}),
        ('qdisc = "fq", limit = "20p"', {"overlimit"}),
        ('qdisc = "fq", flow_limit = "20p"', {"flow_limit"}),
        ('qdisc = "fq_pie", limit = "20p"', {"overlimit"}),
        ('qdisc = "fq_pie", target = "1ms", tupdate = "4ms", alpha = 32, beta = 32', {"pie"}),
        ('qdisc = "tbf", rate = "1mbit", burst = "3kb", limit = "20kb"', {"overlimit"}),
        ('qdisc = "cake", bandwidth = "1mbit", rtt = "20ms"', {"cake"}),
        # The average of a hundred packets' memory stays below `min` when slow start overruns the limit.
        ('qdisc = "red", limit = "20kb", min = "18kb", max = "19kb", avpkt = "1000b", burst = 99', {"overlimit"}),
    ],
)
def test_the_kernels_counters_tell_why_packets_were_dropped(
    tmp_path: Path, built: Image, queue: str, reasons: set[str]
) -> None:
    text = ROUTED.replace('qdisc = "pfifo", limit = "20p"', queue)
    (each,) = bs.run(write(tmp_path, text), engine="guest", out=tmp_path / "out").runs
    assert set(each.drops["reason"]) == reasons
    assert set(each.drops["observed"]) == {"counter"}
    assert each.drops["flow"].null_count() == each.drops["bytes"].null_count() == each.drops.height
    counted = each.queues.group_by("port").agg(pl.col("dropped").max())
    assert each.drops.height == counted["dropped"].sum()
    assert "sojourn.r1>h2.p<N>_ms" in bs.metrics.not_measured(each)


def test_a_discipline_that_the_kernel_lacks_is_refused_by_its_module_and_no_run_is_stored(
    tmp_path: Path, built: Image
) -> None:
    text = ROUTED.replace('qdisc = "pfifo", limit = "20p"', 'qdisc = "dualpi2"')
    with pytest.raises(EngineError, match=r"\(\S+\) has no sch_dualpi2; use --engine sim, or another --kernel"):
        bs.run(write(tmp_path, text), engine="guest", out=tmp_path / "out")
    assert not list((tmp_path / "out").rglob("run.json"))


def test_tc_in_the_guest_has_the_tables_of_netems_distributions(tmp_path: Path, built: Image) -> None:
    netem = 'qdisc = "netem", delay = "10ms", jitter = "1ms", distribution = "normal"'
    text = ROUTED.replace('qdisc = "pfifo", limit = "20p"', netem)
    (run,) = bs.run(write(tmp_path, text), engine="guest", out=tmp_path / "out").runs
    assert run.metrics["rtt.max_ms"] > run.metrics["rtt.p50_ms"] > 10


def test_a_further_run_starts_within_two_seconds(tmp_path: Path, built: Image) -> None:
    qemu = hardware.find_qemu()
    request = agent.request(point(IDLE.replace('"2s"', '"10ms"'), tmp_path), 1, guest.OPTIONS)

    def cpu_s() -> float:
        done = run.run(qemu, built, state.saved_state(qemu, built), request, lambda _: True)
        assert done is not None
        return done.cpu_s

    # CPU time, because on a busy machine other programs lengthen the wall time. One start of four is enough, because
    # they also fill the processor's caches, and then the same start takes up to twice the CPU time.
    assert any(cpu_s() < 2 for _ in range(4))


def test_an_interrupted_run_ends_its_emulator(tmp_path: Path, built: Image) -> None:
    with pytest.raises(_core.Interrupted):
        guest.run(point(SMALL, tmp_path), 1, tmp_path, lambda now_ns, _: now_ns < 500_000_000)
    assert not children(os.getpid())


def test_a_killed_run_leaves_no_process_and_no_run(tmp_path: Path, built: Image) -> None:
    write(tmp_path, SMALL.replace('"2s"', '"1000s"'))
    with start(["run", "lab.toml", "--engine", "guest"], tmp_path) as process:
        until = time.monotonic() + 120
        while not (emulators := children(process.pid)):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    while any(Path(f"/proc/{emulator}").exists() for emulator in emulators):
        assert time.monotonic() < until
        time.sleep(0.1)
    assert not list(tmp_path.glob("results/**/run.json"))


def test_what_the_agent_refuses_is_told_as_it_says_it(tmp_path: Path, built: Image) -> None:
    received: list[bytes] = []

    def receive(data: bytes) -> bool:
        received.append(data)
        return True

    qemu = hardware.find_qemu()
    request = json.dumps({"protocol": _core.PROTOCOL, "seed": 1}).encode()
    assert run.run(qemu, built, state.saved_state(qemu, built), request, receive) is not None
    assert b"scenario" in b"".join(received)


def test_what_linux_cannot_hold_is_refused_before_anything_runs(tmp_path: Path) -> None:
    text = SMALL.replace('limit = "20p"', 'limit = "5gb"').replace("pfifo", "bfifo")
    with pytest.raises(
        EngineError, match=r"lab \(.*\) on guest: h1>h2: limit \d+ is more than Linux' sch_fifo can hold"
    ):
        bs.run(write(tmp_path, text), engine="guest", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_request_that_does_not_fit_is_refused(built: Image) -> None:
    qemu = hardware.find_qemu()
    saved = state.saved_state(qemu, built)
    with pytest.raises(EngineError, match="the guest reads at most 1048575"):
        run.run(qemu, built, saved, b" " * (1 << 20), lambda _: True)


def test_a_damaged_state_is_told_with_what_qemu_says(tmp_path: Path, built: Image) -> None:
    damaged = tmp_path / "state"
    damaged.write_bytes(b"nothing of a state")
    with pytest.raises(EngineError, match="QEMU ended with status 1"):
        run.run(hardware.find_qemu(), built, damaged, b"{}", lambda _: True)


def test_an_emulator_that_is_missing_is_told_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUFFERSCOPE_QEMU", "qemu-that-is-not-there")
    with pytest.raises(EngineError, match="apt-get install qemu-system-x86"):
        hardware.find_qemu()


def test_an_image_is_found_again_instead_of_built(built: Image) -> None:
    notes: list[str] = []
    assert image.build(kernels.choose(None), agent.program(), notes.append) == built
    assert notes == []


def children(pid: int) -> list[int]:
    """The emulators that a process has started."""
    listed = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line.split()[0]) for line in listed.stdout.splitlines() if "qemu" in line]
