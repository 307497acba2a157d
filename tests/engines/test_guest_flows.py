"""The columns of `flows` mean the same on a kernel as in the simulator: their units and magnitudes are compared."""

from pathlib import Path

import polars as pl
import pytest
from dumbbell import dumbbell
from guests import build_guest
from laboratory import write

import bufferscope as bs

HOST = """
[[host]]
name = "h2"
tcp = { rmem_max = "6mb", rmem_default = "128kb" }
"""


def path(**bulk: object) -> str:
    """One flow with these keys over 10 Mbit/s and 40 ms."""
    line = {"name": "line", "delay": "20ms", "queue": {"qdisc": "codel", "ecn": True}}
    return dumbbell("One flow", "8s", access={"delay": None}, bottleneck=line, bulk=bulk, ping=None) + HOST


SCENARIOS = {
    "paced and marked": path(pacing=True, ecn=True),
    "limited by the application": path(rate="5mbit"),
    "limited by the receiver": path().replace('"6mb", rmem_default = "128kb"', '"64kb", rmem_default = "64kb"'),
}
EXACT = ("state", "app_limited", "reordering", "lost", "retransmits")
"""Columns whose most frequent value is the same."""
CLOSE = {
    "inflight_bytes": 0.1,
    "srtt_ns": 0.05,
    "min_rtt_ns": 0.01,
    "delivery_rate_bps": 0.05,
    "delivered_bytes": 0.05,
    "delivered_packets": 0.05,
    "busy_ns": 0.01,
    "rwnd_bytes": 0.2,
}
"""Columns whose medians are close, with the share by which they may differ. The receiver's window keeps what the
largest burst of the past brought in one round trip."""

ONLY_WHERE = {
    "delivered_ce_packets": ("marked", 1),
    "rwnd_limited_ns": ("receiver", 0.01),
    "pacing_bps": ("paced", 1),
}
"""Columns with a value in the last sample of one scenario only, with the share by which they may differ there, since
marks are few and a pacing rate is momentary."""


def last(flows: pl.DataFrame, column: str) -> int:
    """The value of the last sample; 0 for none."""
    return int(flows[column][-1] or 0)


@pytest.fixture(scope="session")
def built() -> None:
    build_guest()


@pytest.mark.guest
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_columns_of_a_flow_have_the_same_units_on_a_kernel(tmp_path: Path, built: None, name: str) -> None:
    result = bs.run(write(tmp_path, SCENARIOS[name]), engine=["sim", "guest"], out=tmp_path / "out")
    sim, guest = (run.flows.filter(pl.col("t_ns") > 3_000_000_000) for run in result.runs)
    for column in EXACT:
        assert sim[column].mode().to_list() == guest[column].mode().to_list(), column
    for column, share in CLOSE.items():
        assert sim[column].median() == pytest.approx(guest[column].median(), rel=share), column
    for column, (where, share) in ONLY_WHERE.items():
        ours, kernels = (last(flows, column) for flows in (sim, guest))
        assert (ours > 0, kernels > 0) == (where in name, where in name), column
        assert ours == pytest.approx(kernels, rel=share), column
    # Data written but not sent yet: none if the application is the limit.
    waits = name != "limited by the application"
    assert [last(flows, "notsent_bytes") > 10_000 for flows in (sim, guest)] == [waits, waits]
