"""The sentence that states the obvious finding, and the cases in which there must be none."""

from typing import Any

import pytest
from handmade import MS, PING, TCP, HandmadeRun, probes, scenario

from bufferscope.analysis.findings import find, told
from bufferscope.figures.source import PlottedPoint

NBSP = "\N{NO-BREAK SPACE}"


def queue(packets: int, port: str = "r1>h2", start_ns: int = 0) -> list[dict[str, Any]]:
    """A port that always has `packets` full packets, which take 1.211 ms each at 10 Mbit/s."""
    return [
        {"t_ns": start_ns + t * 10 * MS, "port": port, "packets": packets, "bytes": packets * 1514} for t in range(201)
    ]


def run(rtts_ms: list[float | None], *queues: list[dict[str, Any]], **traffic: Any) -> HandmadeRun:
    """A run over a path of 20 ms; its ping takes 0.16 ms more, twice 98 bytes at 10 Mbit/s."""
    rows = {"probes": probes(rtts_ms), "queues": [row for rows in queues for row in rows]}
    return HandmadeRun(scenario(traffic or {"bulk": TCP, "ping": PING}, duration_s=2), rows=rows)


def test_a_plain_queue_is_told_with_its_part() -> None:
    (sentence,) = told([PlottedPoint("", (run([110.16] * 20, queue(75)),))])
    assert sentence == f"The queue adds 90{NBSP}ms to the path's 20{NBSP}ms (median); all of it in r1>h2."


def test_the_ring_is_told_where_a_port_has_one() -> None:
    ring = [{**row, "layer": "ring"} for row in queue(60)]
    (sentence,) = told([PlottedPoint("", (run([110.16] * 20, queue(15), ring),))])
    expected = f"all of it in r1>h2, 80{NBSP}% of that in the driver's ring."
    assert sentence == f"The queue adds 90{NBSP}ms to the path's 20{NBSP}ms (median); {expected}"


def test_the_share_is_that_of_the_ping_s_way() -> None:
    found = find((run([110.16] * 20, queue(68), queue(7, "h2>r1")),))
    assert found is not None
    assert found.port == "r1>h2"
    assert found.share == pytest.approx(68 / 75)
    assert found.added_ms == pytest.approx(90, abs=0.01)


def test_lost_pings_are_said_beside_the_median() -> None:
    rtts: list[float | None] = [110.16] * 16 + [None] * 4
    (sentence,) = told([PlottedPoint("", (run(rtts, queue(75)),))])
    assert sentence.endswith(f"all of it in r1>h2; 20{NBSP}% of the pings are lost.")
    assert "lost" not in told([PlottedPoint("", (run([110.16] * 20, queue(75)),))])[0]


SILENT = {
    "no ping": run([], queue(75), bulk=TCP),
    "two pings": run([110.0] * 20, queue(75), ping=PING, another=PING),
    "no queue": run([20.2] * 20, queue(0)),
    "a short queue": run([27.0] * 20, queue(6)),
    "split evenly": run([110.0] * 20, queue(38), queue(37, "h2>r1")),
    "hidden by losses": run([110.0, None, None], queue(75)),
    "nothing answered": run([None, None, None], queue(75)),
    "not the queue's delay": run([110.0] * 20, queue(4)),
    "a queue that the ping does not meet": run([30.5] * 20, queue(75)),
    "no samples of the queue": run([110.0] * 20),
}


@pytest.mark.parametrize("why", SILENT)
def test_nothing_is_said_where_it_is_not_plain(why: str) -> None:
    assert find((SILENT[why],)) is None
    assert told([PlottedPoint("", (SILENT[why],))]) == []


def test_every_repetition_must_show_it() -> None:
    plain = run([110.0] * 20, queue(75))
    assert find((plain, plain)) is not None
    assert find((plain, SILENT["no queue"])) is None
    assert find((plain, run([110.0] * 20, queue(75, "h2>r1")))) is None, "another port"


def test_of_many_points_the_extremes_are_told() -> None:
    points = [PlottedPoint(f"{n}p", (run([20.16 + 1.2 * n] * 20, queue(n)),)) for n in range(20, 100, 10)]
    sentences = told(points)
    assert [sentence.split(":")[0] for sentence in sentences] == ["20p", "90p"]
