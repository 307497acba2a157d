"""When Linux retransmits a SYN, before and after 6.5, compared with the simulator.

The first datagram is on the wire for 12 s and a second waits behind it, so that every SYN is dropped.
"""

from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from dumbbell import dumbbell, pfifo
from guests import build_guest
from laboratory import write

import bufferscope as bs
from bufferscope.base.errors import EngineError
from bufferscope.engines import EngineName

OLD, NEW = "6.1", "6.12"

FULL = (
    dumbbell(
        "SYNs before a full queue",
        "10s",
        access={"delay": None},
        bottleneck={"name": "line", "rate": "1kbit", "delay": None, "queue": pfifo(1)},
        bulk={"name": "filler", "kind": "udp", "flows": None, "congestion": None, "rate": "100kbit", "stop": "300ms"},
        ping={"name": "late", "kind": "tcp", "interval": None, "start": "500ms"},
    )
    + """
[[host]]
name = "h1"
tcp = { syn_linear_timeouts = 0 }
"""
)


@pytest.fixture(scope="session")
def kernels() -> None:
    for kernel in (OLD, NEW):
        build_guest(kernel)


def dropped_s(directory: Path, timeouts: int, kernel: str | None = None) -> list[float]:
    """When SYNs were dropped: on a kernel, or else in the simulator."""
    text = FULL.replace("syn_linear_timeouts = 0", f"syn_linear_timeouts = {timeouts}")
    engine: EngineName = "sim" if kernel is None else "guest"
    (each,) = bs.run(write(directory, text), engine=engine, kernel=kernel, out=directory / f"{kernel}").runs
    return [t_ns / 1e9 for t_ns in each.drops.filter(pl.col("t_ns") > 400_000_000)["t_ns"].to_list()]


@pytest.mark.guest
@pytest.mark.parametrize(
    ("kernel", "timeouts", "waits_s"),
    [(OLD, 0, [1, 2, 4]), (NEW, 0, [1, 2, 4]), (NEW, 4, [1, 1, 1, 1, 1, 2]), (NEW, 2, [1, 1, 1, 2, 4])],
)
def test_a_syn_is_sent_again_when_the_file_says(
    tmp_path: Path, kernels: None, kernel: str, timeouts: int, waits_s: list[int]
) -> None:
    on_linux, simulated = dropped_s(tmp_path, timeouts, kernel), dropped_s(tmp_path, timeouts)
    for times_s in (on_linux, simulated):
        waited_s = [later - earlier for earlier, later in pairwise(times_s)]
        assert len(waited_s) == len(waits_s)
        for waited, wait in zip(waited_s, waits_s, strict=True):
            # A timer of seconds is up to a sixteenth late, and the kernel's queue is looked at every 10 ms.
            assert wait - 0.011 < waited < wait * 17 / 16 + 0.011


@pytest.mark.guest
def test_a_kernel_without_linear_timeouts_refuses_them_by_name(tmp_path: Path, kernels: None) -> None:
    with pytest.raises(EngineError, match=r"host `h1`: syn_linear_timeouts is 4, and this kernel \(6\.1\.0"):
        dropped_s(tmp_path, 4, OLD)
