"""A sender with segmentation offload writes and retransmits as the kernel does."""

from pathlib import Path

import pytest
from dumbbell import dumbbell
from guests import measured_on_both


@pytest.mark.guest
def test_what_a_short_queue_drops_of_packets_with_several_segments_is_sent_again(tmp_path: Path) -> None:
    """Both lose 14 packets in the first overshoot and retransmit 22 segments.

    For that, the packets must end where the kernel's end: the program must write at the same moments, and the receiver
    must offer the same window while a gap is filled. The simulator lost 13 packets and retransmitted 20 segments while
    a program that was woken wrote even if there was no room any more, and read before the acknowledgement was sent.
    """
    text = dumbbell(
        "One flow with offload through a queue of 11 packets",
        "15s",
        tcp={"gso_max_segs": 16},
        access={"delay": "6250us", "wire": {"jitter": "400us", "keep_order": True}},
        bottleneck={
            "delay": "6250us",
            "rate": "2700kbit",
            "queue": {"qdisc": "fq", "flow_limit": "11p", "quantum": "3028b", "maxrate": "229500bit"},
        },
        bulk={"start": "9235ms"},
        ping=None,
    )
    sims, guests = measured_on_both(text, tmp_path, repeat=2)
    for name in ("drops.r1>h2", "retransmits.total"):
        assert [each[name] for each in sims] == [each[name] for each in guests], name
