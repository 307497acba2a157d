"""The metrics of videos: what follows from the times at which segments arrive, by hand.

A segment is played for 2 s; playback starts with 2 s in the buffer, and continues with 4 s. At 0.4 Mbit/s a segment has
100 kB, at 0.8 Mbit/s 200 kB.
"""

from collections.abc import Sequence

import pytest
from handmade import SECOND, VIDEO, HandmadeRun, Rows, scenario

from bufferscope import metrics

STALLING = [(1, 100), (2, 100), (5.5, 200), (8, 200), (9, 100)]
"""When segments arrive, and their sizes in kB: they are played at 1, 3, 8, 10 and 12 s, with a pause from 5 to 8 s."""


def segments(arrivals: Sequence[tuple[float | None, int]]) -> Rows:
    """The rows of segments that are fetched one after the other, from 0.5 s on; None: it does not arrive."""
    starts = [0.5, *(at_s or 0 for at_s, _ in arrivals)]
    return [
        {"traffic": "video", "flow": "video/1", "started_ns": round(start_s * SECOND),
         "finished_ns": None if at_s is None else round(at_s * SECOND), "bytes": kb * 1000}
        for start_s, (at_s, kb) in zip(starts, arrivals, strict=False)
    ]  # fmt: skip


def measured(
    arrivals: Sequence[tuple[float | None, int]],
    duration_s: float = 13,
    warmup_s: float = 0,
    stop_s: float | None = None,
) -> dict[str, float]:
    """The metrics of the video without their prefix."""
    stop = {} if stop_s is None else {"stop_ns": round(stop_s * SECOND)}
    run = HandmadeRun(scenario({"video": VIDEO | stop}, duration_s, warmup_s), {"transfers": segments(arrivals)})
    prefix = "video.video."
    return {name.removeprefix(prefix): value for name, value in metrics.compute(run).items() if name.startswith(prefix)}


def test_a_video_stalls_from_the_end_of_its_buffer_until_it_holds_enough_again() -> None:
    """Of the 12 s from the start of playback, 3 s are a pause; the rest are 5 s of 0.4 and 4 s of 0.8 Mbit/s."""
    assert measured(STALLING) == {
        "startup_s": 0.5,
        "rate_mbit": pytest.approx((5 * 0.4 + 4 * 0.8) / 9),
        "switches": 2,
        "stalls": 1,
        "stalled_s": 3,
        "stalled_percent": 25,
    }


def test_only_what_lies_in_the_window_counts_except_for_the_start() -> None:
    """From 6 s on: 2 s of the pause, 4 s of 0.8 and 1 s of 0.4 Mbit/s, and both changes."""
    assert measured(STALLING, warmup_s=6) == {
        "startup_s": 0.5,
        "rate_mbit": pytest.approx((4 * 0.8 + 0.4) / 5),
        "switches": 2,
        "stalls": 1,
        "stalled_s": 2,
        "stalled_percent": pytest.approx(100 * 2 / 7),
    }
    late = measured(STALLING, warmup_s=11)
    assert (late["stalls"], late["switches"]) == (0, 1)
    assert late["rate_mbit"] == pytest.approx((0.8 + 0.4) / 2)


def test_a_stall_that_does_not_end_lasts_until_the_end() -> None:
    found = measured([(1, 100), (2, 100), (None, 100)], duration_s=10)
    assert (found["stalls"], found["stalled_s"]) == (1, 5)
    assert measured([(1, 100), (2, 100), (6, 100)], duration_s=10) == found, "one segment is too little to continue"
    stalled = measured([(1, 100), (2, 100), (None, 100)], duration_s=10, warmup_s=6)
    assert (stalled["stalled_percent"], "rate_mbit" in stalled) == (100, False)


def test_nothing_is_played_after_the_stop() -> None:
    """The viewer leaves at 4 s, in the middle of the second segment."""
    found = measured([(1, 100), (2, 200)], duration_s=10, stop_s=4)
    assert (found["stalls"], found["stalled_percent"]) == (0, 0)
    assert found["rate_mbit"] == pytest.approx((2 * 0.4 + 0.8) / 3)
    gone = measured([(1, 100), (2, 200)], duration_s=10, warmup_s=5, stop_s=4)
    assert list(gone) == ["startup_s"], "it ends before the window begins"


def test_a_video_that_never_starts_has_only_an_infinite_startup() -> None:
    assert measured([(None, 100)]) == {"startup_s": float("inf")}
    assert measured([(5, 100)], stop_s=4) == {"startup_s": float("inf")}
    assert measured([]) == {}
