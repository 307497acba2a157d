"""The log of TCP's state of a guest's kernel, against that of the simulator."""

from itertools import islice
from pathlib import Path

import pytest
from guests import build_guest
from laboratory import ROUTED, write

import bufferscope as bs
from bufferscope.engines import EngineName
from bufferscope.interop.states.exporting import export_states
from first_difference import Tolerance, compare, read

pytestmark = pytest.mark.guest

ENGINES: tuple[EngineName, ...] = ("sim", "guest")
FIRST = 4
"""Out of slow start into recovery, and back: later, chance decides when a queue overflows."""


def test_the_simulator_leaves_slow_start_as_a_kernel_does(tmp_path: Path) -> None:
    build_guest()
    file = write(tmp_path, ROUTED)
    logs = []
    for engine in ENGINES:
        (run,) = bs.run(file, ["sample.flows=1ms"], engine=engine, out=tmp_path / engine).runs
        (log,) = export_states([run], tmp_path / "export" / engine, sampled=True)
        logs.append(list(read(log)))
    ours, kernels = logs
    lines = list(islice(compare(ours, kernels, Tolerance(ms=5, share=0.05)), FIRST))
    assert [found for _, found in lines] == [""] * FIRST, "\n".join(line for line, _ in lines)
