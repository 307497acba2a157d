"""Real drivers' transmit rings: virtio-net cards in a guest, and how the other engines respond to rings.

The wire sends a full packet, 1514 bytes, in 1.2112 ms at 10 Mbit/s. A packet may take up to 19 descriptors, so
`virtio_net` stops the queue when fewer are free in its ring: a ring of 64 holds 46 packets, and one of 256 holds 238.
"""

from pathlib import Path
from statistics import median

import polars as pl
import pytest
from guests import ROUTED, Carry, build_guest, busy_machine, carried
from laboratory import write

import bufferscope as bs
from bufferscope.base.errors import EngineError, InputError
from bufferscope.model.experiment import load

BQL = "6.12"
"""A kernel whose virtio_net has byte queue limits, and one whose has none."""
NO_BQL = "6.1"


def ringed(ring: str, queue: str = '{ qdisc = "pfifo", limit = "1000p" }', duration: str = "4s") -> str:
    """The lab with that ring, in one direction."""
    text = ROUTED.replace('"2s"', f'"{duration}"', 1).replace('queue = { qdisc = "pfifo", limit = "20p" }', "")
    return text.replace('rate = "10mbit"', f'forward = {{ rate = "10mbit", queue = {queue}, ring = {ring} }}')


@pytest.fixture(scope="session")
def kernels() -> None:
    for kernel in (BQL, NO_BQL):
        build_guest(kernel)


@pytest.fixture
def carry(tmp_path: Path, kernels: None) -> Carry:
    """Runs an experiment's text on a kernel; gives its tables' bytes."""
    return lambda text, kernel: carried(text, tmp_path, kernel=kernel)


def ring_packets(tables: dict[str, bytes]) -> list[int]:
    """The ring's length in the second half of the run."""
    return column(layer(tables, "ring").filter(pl.col("t_ns") > 2_000_000_000), "packets")


def column(table: pl.DataFrame, name: str) -> list[int]:
    return table[name].to_list()


def layer(tables: dict[str, bytes], name: str) -> pl.DataFrame:
    return pl.read_parquet(tables["queues"]).filter(port="r1>h2", layer=name)


@pytest.mark.guest
@pytest.mark.parametrize(("size", "holds"), [(64, 46), (256, 238)])
def test_without_bql_the_ring_fills_up_before_the_queue_does(carry: Carry, size: int, holds: int) -> None:
    tables = carry(ringed(f'{{ size = "{size}p", bql = false }}'), NO_BQL)
    packets = ring_packets(tables)
    assert max(packets) == holds
    assert median(packets) >= holds - 1, "CUBIC keeps the queue above it filled"


@pytest.mark.guest
def test_with_bql_packets_wait_in_the_queue_and_not_in_the_ring(carry: Carry) -> None:
    tables = carry(ringed('{ size = "64p", bql = true }'), BQL)
    assert max(ring_packets(tables)) <= 8
    assert max(column(layer(tables, "qdisc"), "packets")) > 100


@pytest.mark.guest
def test_bql_can_be_switched_off_where_the_driver_has_it(carry: Carry) -> None:
    tables = carry(ringed('{ size = "64p", bql = false }'), BQL)
    assert median(ring_packets(tables)) == 46
    # The limit counts bytes, and the packet that reaches it may exceed it: beside small ones, of a ping or at the end
    # of a write, it leaves room for packets that the ring has no descriptors for. The kernel takes them from the
    # discipline and keeps them until it has.
    assert max(column(layer(tables, "ring"), "bytes")) < (46 + 1) * 1514


@pytest.mark.guest
def test_bql_that_the_driver_has_not_is_refused_by_name(carry: Carry) -> None:
    with pytest.raises(EngineError, match=r"`r1>h2` has bql = true, and virtio_net of this kernel \(6\.1\..*--kernel"):
        carry(ringed('{ size = "64p", bql = true }'), NO_BQL)


@pytest.mark.guest
@pytest.mark.parametrize(("kernel", "bql"), [(NO_BQL, "false"), (BQL, "true")])
def test_runs_with_a_ring_are_the_same_whatever_else_the_machine_does(carry: Carry, kernel: str, bql: str) -> None:
    text = ringed(f'{{ size = "64p", bql = {bql} }}', duration="2s")
    alone = carry(text, kernel)
    with busy_machine():
        loaded = carry(text, kernel)
    assert alone == loaded == carry(text, kernel)


@pytest.mark.guest
def test_the_wire_sends_one_full_packet_a_tick(carry: Carry) -> None:
    tables = carry(ringed('{ size = "64p", bql = false }'), NO_BQL)
    ring = layer(tables, "ring").filter(pl.col("t_ns") > 1_000_000_000)
    packets, times_ns = column(ring, "sent_packets"), column(ring, "t_ns")
    sent = packets[-1] - packets[0]
    seconds = (times_ns[-1] - times_ns[0]) / 1e9
    # Pings take a full packet's time too.
    assert sent / seconds == pytest.approx(10e6 / 8 / 1514, rel=0.002)
    queue = layer(tables, "qdisc")
    assert (queue["sent_packets"] >= layer(tables, "ring")["sent_packets"]).all()


@pytest.mark.guest
def test_both_directions_and_no_delay_work_too(carry: Carry) -> None:
    text = ringed('{ size = "64p", bql = false }').replace('delay = "10ms"\n', "")
    back = 'reverse = { rate = "1mbit", ring = { size = "128p", bql = false } }'
    access = '[[link]]\nname = "access"'
    text = text.replace(access, f"{back}\n\n{access}", 1)
    tables = carry(text, NO_BQL)
    assert set(pl.read_parquet(tables["queues"]).filter(layer="ring")["port"]) == {"r1>h2", "h2>r1"}
    assert pl.read_parquet(tables["probes"])["rtt_ns"].null_count() == 0


def test_an_engine_without_rings_refuses_them_before_anything_runs(tmp_path: Path) -> None:
    path = write(tmp_path, ringed('{ size = "64p", bql = false }'))
    reason = "the veth devices of network namespaces have none"
    with pytest.raises(EngineError, match=f"r1>h2 has a ring, and {reason}: use --engine guest"):
        bs.run(path, engine="host", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_rings_that_no_card_can_have_are_refused_before_anything_runs(tmp_path: Path) -> None:
    path = write(tmp_path, ringed('{ size = "100p", bql = false }'))
    with pytest.raises(EngineError, match="the ring of r1>h2 has 100p, which virtio_net cannot be set to"):
        bs.run(path, engine="guest", out=tmp_path / "out")


def test_no_script_builds_a_ring(tmp_path: Path) -> None:
    from bufferscope.running.commands import script

    experiment = load(write(tmp_path, ringed('{ size = "64p", bql = false }')))
    with pytest.raises(InputError, match="the ring of r1>h2 takes a network card"):
        script(experiment, experiment.points[0])
