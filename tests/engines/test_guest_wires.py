"""Wires of real kernels lose, delay and reorder as many packets as they are asked to.

10,000 probes in 20 s pass a wire of 10 Mbit/s and 30 ms. Bounds are five standard deviations of what a correct wire
does: of a million runs, one misses a bound by chance.
"""

from itertools import pairwise
from math import sqrt
from pathlib import Path
from statistics import mean, median, stdev

import polars as pl
import pytest
from guests import build_guest
from laboratory import write

import bufferscope as bs
from bufferscope.engines import EngineName

LAB = """\
title = "A wire"
duration = "20s"

[[link]]
name = "line"
ends = ["h1", "h2"]
rate = "10mbit"
delay = "30ms"

[link.forward]
wire = WIRE

[[traffic]]
name = "ping"
kind = "ping"
from = "h1"
to = "h2"
interval = "2ms"
"""
PROBES = 10_000
IDLE_MS = 60 + 2 * 98 * 8 / 10_000
"""The round-trip time of a ping of 84 bytes and an Ethernet header, each way."""
KERNEL_MS = 0.1
"""What a kernel takes besides."""
SIGMAS = 5


def probes(wire: str, engine: EngineName, directory: Path) -> pl.DataFrame:
    """The probes in order of sending."""
    run = bs.run(write(directory, LAB.replace("WIRE", wire)), engine=engine, out=directory / engine).runs[0]
    found = run.probes.sort("seq")
    assert len(found) == PROBES
    return found


def rtts_ms(found: pl.DataFrame) -> list[float]:
    """The round-trip times of those that were answered."""
    return [ns / 1e6 for ns in found["rtt_ns"].drop_nulls().to_list()]


def overtaken(found: pl.DataFrame) -> float:
    """The share of the probes that arrived after a later one."""
    arrived = found.drop_nulls("rtt_ns").select(at_ns=pl.col("sent_ns") + pl.col("rtt_ns"))["at_ns"]
    latest = arrived.cum_max().shift(1)
    return float((arrived < latest).sum()) / PROBES


@pytest.fixture(scope="session")
def built() -> None:
    build_guest()


@pytest.mark.guest
def test_a_wire_loses_the_share_that_it_is_asked_to(tmp_path: Path, built: None) -> None:
    found = probes("{ loss = 0.05 }", "guest", tmp_path)
    deviation = sqrt(0.05 * 0.95 / PROBES)
    assert found["rtt_ns"].null_count() / PROBES == pytest.approx(0.05, abs=SIGMAS * deviation)
    assert min(rtts_ms(found)) >= IDLE_MS
    assert median(rtts_ms(found)) == pytest.approx(IDLE_MS, abs=KERNEL_MS)
    assert overtaken(found) == 0


@pytest.mark.guest
def test_jitter_spreads_delays_uniformly_and_reorders_as_in_the_simulator(tmp_path: Path, built: None) -> None:
    guest, sim = (probes('{ jitter = "5ms" }', engine, tmp_path) for engine in ("guest", "sim"))
    deviation = 10 / sqrt(12)
    for found, kernel_ms in [(guest, KERNEL_MS), (sim, 0.001)]:
        assert found["rtt_ns"].null_count() == 0, "what was overtaken at the end is waited for"
        mean_error = SIGMAS * deviation / sqrt(PROBES)
        assert mean(rtts_ms(found)) == pytest.approx(IDLE_MS + kernel_ms / 2, abs=mean_error + kernel_ms / 2)
        # A sample's variance has a relative variance of its kurtosis less one, by its size: 0.8 for a uniform one.
        assert stdev(rtts_ms(found)) == pytest.approx(deviation, rel=SIGMAS * sqrt(0.8 / PROBES) / 2)
        assert min(rtts_ms(found)) > IDLE_MS - 5 - 0.001
        # A probe waits for those before it on the wire, and for the kernel.
        assert max(rtts_ms(found)) < IDLE_MS + 5 + 10 * KERNEL_MS
    # Whether a probe is overtaken depends on its neighbours, but not on those further than 10 ms, or five probes, away.
    share = overtaken(sim)
    error = SIGMAS * sqrt(2 * 5 * share * (1 - share) / PROBES)
    assert overtaken(guest) == pytest.approx(share, abs=error)


@pytest.mark.guest
def test_a_wire_that_keeps_the_order_makes_packets_wait(tmp_path: Path, built: None) -> None:
    guest, sim = (probes('{ jitter = "5ms", keep_order = true }', engine, tmp_path) for engine in ("guest", "sim"))
    assert (overtaken(guest), overtaken(sim)) == (0, 0)
    # Waiting for the one before adds the same to both, and more than the jitter's own error.
    error = SIGMAS * sqrt(2 * 5) * 10 / sqrt(12) / sqrt(PROBES)
    for found in (guest, sim):
        assert mean(rtts_ms(found)) > IDLE_MS + error
    assert mean(rtts_ms(guest)) == pytest.approx(mean(rtts_ms(sim)), abs=error + KERNEL_MS)


@pytest.mark.guest
def test_each_loss_on_a_wire_has_a_row(tmp_path: Path, built: None) -> None:
    lab = write(tmp_path, LAB.replace("WIRE", "{ loss = 0.05 }"))
    run = bs.run(lab, engine="guest", out=tmp_path / "guest").runs[0]
    assert set(run.drops.select("port", "layer", "reason").iter_rows()) == {("h1>h2", "wire", "loss")}
    # The last sample is as old as five probes at most.
    assert run.probes["rtt_ns"].null_count() - 5 <= len(run.drops) <= run.probes["rtt_ns"].null_count()
    assert run.warnings == [], "what the wire is asked to lose is not lost by mistake"


PACED = """\
title = "Flows that are held back, and then more than the link carries"
duration = "6s"
link = [
  { name = "access", ends = ["h1", "r1"], delay = "5ms" },
  { name = "line", ends = ["r1", "h2"], rate = "2mbit", delay = "5ms", queue = { qdisc = "fq", maxrate = "200kbit" } },
]
traffic = [
  { name = "few", kind = "tcp", from = "h1", to = "h2", flows = 4 },
  { name = "more", kind = "tcp", from = "h1", to = "h2", flows = 12, start = "3s" },
]
"""


@pytest.mark.guest
def test_a_discipline_that_held_packets_back_does_not_catch_up(tmp_path: Path, built: None) -> None:
    run = bs.run(write(tmp_path, PACED), engine="guest", out=tmp_path / "guest").runs[0]
    samples = run.queues.filter(port="r1>h2").sort("t_ns").select("t_ns", bits=8 * pl.col("sent_bytes"))
    waiting = most = 0.0
    for (before_ns, before), (t_ns, bits) in pairwise(samples.iter_rows()):
        waiting = max(0.0, waiting + (bits - before) - 2e6 * (t_ns - before_ns) / 1e9)
        most = max(most, waiting)
    assert samples["bits"][-1] > 2e6 * 2.5, "the link was full in the end"
    assert most < 2 * 8 * 1514, "behind the shaper is what is being sent, and no queue"


BUSY = """\
title = "A discipline that keeps the kernel busy for 1.4 ms, again and again"
duration = "6s"
link = [
  { name = "access", ends = ["h1", "r1"], delay = "10ms" },
  { name = "line", ends = ["r1", "h2"], rate = "10mbit", delay = "10ms", queue = { qdisc = "fq_pie", flows = 4096 } },
]
traffic = [
  { name = "bulk", kind = "tcp", from = "h1", to = "h2", flows = 4, stagger = "1ms" },
  { name = "ping", kind = "ping", from = "h1", to = "h2", interval = "20ms", start = "2s" },
]
"""


@pytest.mark.guest
def test_a_wire_catches_up_after_its_kernel_was_busy(tmp_path: Path, built: None) -> None:
    """A wire that does not stays behind by 0.8 ms as long as the link is full."""
    lab = write(tmp_path, BUSY)
    guest, sim = (bs.run(lab, engine=engine, out=tmp_path / engine).runs[0] for engine in ("guest", "sim"))
    for run in (guest, sim):
        assert run.metrics["utilization.r1>h2"] > 0.95
    assert median(rtts_ms(guest.probes)) == pytest.approx(median(rtts_ms(sim.probes)), abs=0.5)
