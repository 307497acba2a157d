"""A video on a kernel plays as in the simulator: the same bit rates, start and stalls."""

from pathlib import Path

import pytest
from dumbbell import dumbbell, pfifo
from guests import build_guest
from laboratory import write

import bufferscope as bs
from bufferscope import metrics

VIDEO = """
[[traffic]]
name = "video"
kind = "video"
from = "h1"
to = "h2"
"""


def measured(text: str, directory: Path) -> list[metrics.Metrics]:
    """The metrics on the simulator and on a guest."""
    build_guest()
    result = bs.run(write(directory, text), engine=["sim", "guest"], out=directory / "out")
    return [metrics.compute(run) for run in result.runs]


@pytest.mark.guest
def test_a_video_alone_is_the_same_on_a_kernel(tmp_path: Path) -> None:
    """The highest bit rate that 0.9 times 9.6 Mbit/s of payload allow, after two lower ones at the start."""
    text = dumbbell("A video", "25s", bottleneck={"queue": pfifo(100)}, bulk=None, ping=None) + VIDEO
    sim, guest = measured(text, tmp_path)
    assert sim["video.video.startup_s"] == pytest.approx(guest["video.video.startup_s"], rel=0.05)
    for name in ("rate_mbit", "switches", "stalls"):
        assert sim[f"video.video.{name}"] == pytest.approx(guest[f"video.video.{name}"], rel=0.01), name
    assert sim["goodput.video_mbit"] == pytest.approx(guest["goodput.video_mbit"], rel=0.02)


@pytest.mark.guest
def test_a_video_beside_a_download_has_about_the_same_share_on_a_kernel(tmp_path: Path) -> None:
    """The queue is full when the video starts. Later its bit rate depends on which packets are lost.

    In one pair of runs it was 2.28 and 2.53 Mbit/s; the neighbouring bit rates are 2 and 3 Mbit/s. The start depends on
    the losses, too: with the seeds 1 to 8, the simulator needs 1.34 to 1.36 s six times, and 1.43 to 1.44 s twice, as
    the kernel did with seed 1.
    """
    bulk = {"congestion": "cubic"}
    text = dumbbell("A video", "30s", bottleneck={"queue": pfifo(100)}, bulk=bulk, ping=None) + VIDEO + 'start = "5s"\n'
    sim, guest = measured(text, tmp_path)
    assert sim["video.video.startup_s"] == pytest.approx(guest["video.video.startup_s"], rel=0.1)
    assert sim["video.video.rate_mbit"] == pytest.approx(guest["video.video.rate_mbit"], rel=0.25)
    assert [each["video.video.stalls"] for each in (sim, guest)] == [0, 0]
    assert sim["goodput.total_mbit"] == pytest.approx(guest["goodput.total_mbit"], rel=0.02)
