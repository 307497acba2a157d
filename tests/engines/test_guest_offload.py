"""A sender with segmentation offload writes and retransmits as the kernel does."""

from pathlib import Path

import pytest
from guests import build_guest
from laboratory import write

import bufferscope as bs
from bufferscope import metrics

THROUGH_A_SHORT_QUEUE = """
title = "One flow with offload through a queue of 11 packets"
duration = "15s"
tcp = { gso_max_segs = 16 }

[[link]]
name = "access"
ends = ["h1", "r1"]
delay = "6250us"
wire = { jitter = "400us", keep_order = true }

[[link]]
name = "bottleneck"
ends = ["r1", "h2"]
delay = "6250us"
rate = "2700kbit"
queue = { qdisc = "fq", flow_limit = "11p", quantum = "3028b", maxrate = "229500bit" }

[[traffic]]
name = "bulk"
kind = "tcp"
from = "h1"
to = "h2"
congestion = "cubic"
start = "9235ms"
"""


@pytest.mark.guest
def test_what_a_short_queue_drops_of_packets_with_several_segments_is_sent_again(tmp_path: Path) -> None:
    """Both lose 14 packets in the first overshoot and retransmit 22 segments.

    For that, the packets must end where the kernel's end: the program must write at the same moments, and the receiver
    must offer the same window while a gap is filled. The simulator lost 13 packets and retransmitted 20 segments while
    a program that was woken wrote even if there was no room any more, and read before the acknowledgement was sent.
    """
    build_guest()
    result = bs.run(write(tmp_path, THROUGH_A_SHORT_QUEUE), engine=["sim", "guest"], repeat=2, out=tmp_path / "out")
    sims, guests = ([metrics.compute(run) for run in result.by_engine[engine]] for engine in ("sim", "guest"))
    for name in ("drops.r1>h2", "retransmits.total"):
        assert [each[name] for each in sims] == [each[name] for each in guests], name
