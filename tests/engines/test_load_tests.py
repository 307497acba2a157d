"""Flent's tests as kinds of traffic, on every engine."""

from pathlib import Path

import polars as pl
import pytest
from dumbbell import dumbbell, pfifo
from guests import build_guest
from laboratory import write

import bufferscope as bs
from bufferscope.base.errors import EngineError
from bufferscope.engines.host import engine as host
from bufferscope.model.experiment import load
from bufferscope.store.run import Run

PROPAGATION_NS = 20_000_000
MARKS = ("be", "bk", "cs5", "ef")
RRUL = 'kind = "rrul"\ndelay = "1s"\n'
KINDS = {
    "rrul": (RRUL, [*(f"t.up.{mark}" for mark in MARKS), *(f"t.down.{mark}" for mark in MARKS)],
             ["t.udp.ef", "t.udp.bk", "t.udp.be", "t.ping"]),
    "rrul_be": ('kind = "rrul_be"\ndelay = "1s"\n',
                [f"t.{way}.be{number}" for way in ("up", "down") for number in ("", "2", "3", "4")],
                ["t.udp.be1", "t.udp.be2", "t.udp.be3", "t.ping"]),
    "tcp_bidirectional": ('kind = "tcp_bidirectional"\ndelay = "1s"\n', ["t.down", "t.up"], ["t.ping"]),
    "tcp_ndown": ('kind = "tcp_ndown"\nflows = 3\ndelay = "1s"\n', ["t.down"], ["t.ping"]),
    "tcp_nup": ('kind = "tcp_nup"\nflows = 3\ndelay = "1s"\n', ["t.up"], ["t.ping"]),
    "irtt": ('kind = "irtt"\ninterval = "200ms"\ndscp = "ef"\nport = 2112\n', [], ["t"]),
}  # fmt: skip
"""Keys of the entry, its parts that carry data, and its probers."""


def lab(keys: str) -> str:
    """A slow link both ways, with a kind of traffic."""
    line = {"ends": ["h1", "h2"], "delay": "10ms", "queue": pfifo(60)}
    traffic = {"name": "t", "kind": None, "flows": None, "congestion": None}
    return dumbbell("A slow link", "8s", warmup="2s", access=None, bottleneck=line, bulk=traffic, ping=None) + keys


def check(run: Run, carrying: list[str], probers: list[str]) -> None:
    """Each part has its records: flows between the two delays, and a probe each 0.2 s from start to stop."""
    flows = run.flows.with_columns(traffic=pl.col("flow").str.replace(r"/\d+$", ""))
    assert sorted(flows["traffic"].unique()) == sorted(carrying)
    for name in carrying:
        own = flows.filter(traffic=name)
        assert own["t_ns"].ge(1_000_000_000).all(), "the flows begin after the delay"
        assert own["delivered_bytes"].gt(50_000).any(), name
    assert sorted(run.probes["probe"].unique()) == sorted(probers)
    for name in probers:
        probes = run.probes.filter(probe=name)
        assert probes.height in (39, 40), "every 0.2 s of 8 s, from a phase of its own on"
        assert probes["rtt_ns"].count() >= 0.9 * probes.height
        assert probes["rtt_ns"].drop_nulls().ge(PROPAGATION_NS).all()
        both_ways = probes.drop_nulls("rtt_ns")
        assert both_ways["owd_up_ns"].ge(PROPAGATION_NS // 2).all()
        assert (both_ways["owd_up_ns"] + both_ways["owd_down_ns"] == both_ways["rtt_ns"]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_parts_of_a_test_run_in_the_simulator(kind: str, tmp_path: Path) -> None:
    keys, carrying, probers = KINDS[kind]
    (run,) = bs.run(write(tmp_path, lab(keys)), out=tmp_path / "out").runs
    check(run, carrying, probers)


def test_a_test_stops_when_it_is_told_to(tmp_path: Path) -> None:
    experiment = write(tmp_path, lab(RRUL))
    (run,) = bs.run(experiment, ["traffic.t.stop=4s"], out=tmp_path / "out").runs
    assert run.probes["sent_ns"].lt(4_000_000_000).all()
    late = run.flows.filter(pl.col("t_ns") > 4_000_000_000)
    grown = late.group_by("flow").agg(pl.col("delivered_bytes").max() - pl.col("delivered_bytes").min())
    assert grown["delivered_bytes"].sum() == 0, "the TCP flows end a second earlier"


def test_the_directions_of_a_test_share_the_link_alike(tmp_path: Path) -> None:
    (run,) = bs.run(write(tmp_path, lab(RRUL)), out=tmp_path / "out").runs
    up, down = (run.metrics[f"goodput.t.{way}_mbit"] for way in ("up", "down"))
    assert run.metrics["goodput.t_mbit"] == pytest.approx(up + down)
    assert run.metrics["goodput.t_mbit"] == pytest.approx(run.metrics["goodput.total_mbit"])
    assert up == pytest.approx(down, rel=0.1)
    # Only the time under load is measured; full packets hold 1448 bytes in 1514, and acknowledgements share.
    assert up == pytest.approx(10 * 0.93, rel=0.03)


def test_a_test_that_is_added_to_a_running_network_begins_then(tmp_path: Path) -> None:
    simulation = bs.Simulation(write(tmp_path, lab('kind = "ping"\n')))
    simulation.advance(2)
    simulation.set({"traffic.late": {"kind": "rrul", "from": "h1", "to": "h2", "delay": "1s"}})
    run = simulation.finish()
    expected = [f"late.{way}.{mark}/1" for way in ("up", "down") for mark in MARKS]
    assert sorted(run.flows["flow"].unique()) == sorted(expected)
    assert run.probes.filter(pl.col("probe").str.starts_with("late."))["sent_ns"].ge(2_000_000_000).all()


@pytest.fixture(scope="session")
def built() -> None:
    build_guest()


@pytest.mark.guest
@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("kind", KINDS)
def test_the_parts_of_a_test_run_on_a_real_kernel_alike(kind: str, tmp_path: Path) -> None:
    keys, carrying, probers = KINDS[kind]
    sim, guest = bs.run(write(tmp_path, lab(keys)), engine=["sim", "guest"], out=tmp_path / "out").runs
    check(guest, carrying, probers)
    assert guest.metrics["rtt.p50_ms"] == pytest.approx(sim.metrics["rtt.p50_ms"], rel=0.25, abs=1)
    if carrying:
        assert guest.metrics["goodput.total_mbit"] == pytest.approx(sim.metrics["goodput.total_mbit"], rel=0.1)


@pytest.mark.parametrize("kind", ["rrul", "irtt"])
def test_the_parts_of_a_test_run_on_this_machine(kind: str, tmp_path: Path) -> None:
    try:
        host.capabilities()
    except EngineError as error:
        pytest.skip(str(error))
    keys, carrying, probers = KINDS[kind]
    (run,) = bs.run(write(tmp_path, lab(keys)), engine="host", out=tmp_path / "out").runs
    check(run, carrying, probers)


def test_a_taken_port_is_refused(tmp_path: Path) -> None:
    second = '[[traffic]]\nname = "u"\nkind = "udp"\nrate = "1mbit"\nfrom = "h1"\nto = "h2"\nport = 2112\n'
    with pytest.raises(
        bs.ExperimentError, match=r"traffic\.u\.port: found 2112, a port that the same node already uses for traffic\.t"
    ):
        load(write(tmp_path, lab(KINDS["irtt"][0]) + second))
