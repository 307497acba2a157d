"""Flow queues on a kernel: its class statistics show whether a TCP connection shares the queue of a flood."""

from pathlib import Path

import polars as pl
import pytest
from guests import build_guest
from laboratory import write

import bufferscope as bs
from bufferscope.analysis.explanation import explain_run

FLOOD = """
title = "TCP beside a flood"
duration = "7s"
warmup = "2s"
tcp = {{ gso_max_segs = 1 }}

[[link]]
name = "client"
ends = ["h1", "r1"]
rate = "100mbit"

[[link]]
name = "bottleneck"
ends = ["r1", "h2"]
rate = "10mbit"
queue = {{ qdisc = "fq_codel", flows = {flows} }}

[[traffic]]
name = "tcp"
kind = "tcp"
from = "h1"
to = "h2"

[[traffic]]
name = "flood"
kind = "udp"
from = "h1"
to = "h2"
rate = "20mbit"
start = "1s"
"""


@pytest.mark.guest
@pytest.mark.parametrize("flows", [1, 1024])
def test_class_statistics_show_that_tcp_shares_the_queue_of_a_flood(tmp_path: Path, flows: int) -> None:
    build_guest()
    (run,) = bs.run(write(tmp_path, FLOOD.format(flows=flows)), engine="guest", out=tmp_path / "out").runs
    rows = run.flow_queues.filter(pl.col("port") == "r1>h2", pl.col("t_ns") >= 2_000_000_000)
    assert rows["flow"].is_null().all(), "the kernel does not say whose packets a queue holds"
    occupied = rows.group_by("t_ns").agg(pl.len())["len"]
    assert len(occupied) >= 45
    assert occupied.mode().to_list() == [1 if flows == 1 else 2]
    told = " ".join(each.sentence for each in explain_run(run).of("who"))
    assert ("tcp/1 shares its flow queue in r1>h2 with flood/1." in told) == (flows == 1)
    assert ("shares its flow queue" in told) == (flows == 1)
    goodput = run.metrics["goodput.tcp_mbit"]
    assert goodput < 0.5 if flows == 1 else goodput > 4
