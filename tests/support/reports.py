"""Reports of runs made by hand, for the tests of the page."""

import re
import zlib
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from handmade import MS, MSS, NETALYZR, PING, SECOND, TCP, WEB, HandmadeRun, estimates, pfifo, probes, scenario

from bufferscope import report
from bufferscope.figures import NAMES
from bufferscope.figures.declaring import declaration
from bufferscope.results.result import Result
from bufferscope.store.run import Run

DRAWN = [name for name in NAMES if not declaration(name).only_of]
"""The figures that the page draws: all except those of special runs, such as live measurements."""

KEY = "link.bottleneck.queue.limit"
LABELS = ["50p", "100p"]

FIFTY, HUNDRED = 0, 1
"""Positions of the two points."""


def expectation(
    metric: str,
    says: str,
    band: list[float | None],
    at: Sequence[tuple[int, int | None]] = ((FIFTY, None), (HUNDRED, None)),
    differs: str | None = None,
    not_applicable: str | None = None,
) -> dict[str, Any]:
    """An entry of `run.json`: compared at these points, each relative to another or to none."""
    return {
        "metric": metric,
        "says": says,
        "band": band,
        "where": {},
        "relative_to": {KEY: LABELS[at[0][1]]} if at and at[0][1] is not None else None,
        "differs": differs,
        "not_applicable": not_applicable,
        "comparisons": [{"point": point, "relative_to": reference} for point, reference in at],
    }


EXPECTATIONS = [
    expectation("rtt.mean_ms", "about 40 ms", [35, 45]),
    expectation("rtt.max_ms", "never above 50 ms", [None, 50], [(HUNDRED, None)], differs="the probe waits for a page"),
    expectation("rtt.lost", "no loss at all", [0, 0], [(FIFTY, None)]),
    expectation("rtt.mean_ms", "the same at both", [0.9, 1.1], [(FIFTY, HUNDRED)]),
    expectation("rtt.p95_ms", "lost ones hide the tail", [0, 100], [(FIFTY, None)]),
    expectation("rtt.mean_ms", "with 200 packets 80 ms", [70, 90], [], not_applicable="200p was taken out with --set"),
]


def document(**changes: Any) -> dict[str, Any]:
    """The text of an experiment file."""
    words = {
        "title": "Two queues",
        "source": "a report",
        "description": "A flow, a probe and pages share *one* queue.",
        "figures": DRAWN,
        "notes": "Both queues are **short**.",
        "sweep": {KEY: LABELS},
        "expect": [],
    }
    return words | changes


def run(label: str, seed: int = 1, experiment: str = "two-queues", **changes: Any) -> HandmadeRun:
    """A run of 2 s with data for every figure, in which one of five probes is lost."""
    times = range(201)
    queues = [{"t_ns": t * 10 * MS, "packets": t % 50, "bytes": t % 50 * 1514, "sent_bytes": t * 12_000} for t in times]
    flows = [
        {"flow": "bulk/1", "t_ns": t * 10 * MS, "cwnd_bytes": (t + 10) * MSS, "delivered_bytes": t * 10_000,
         "ssthresh_bytes": None if t < 100 else 50 * MSS, "inflight_bytes": (t + 8) * MSS, "srtt_ns": (20 + t) * MS}
        for t in times
    ]  # fmt: skip
    pages = [
        {"traffic": "web", "flow": "web/1", "started_ns": 0, "finished_ns": SECOND, "bytes": 1000},
        {"traffic": "web", "flow": "web/2", "started_ns": SECOND, "finished_ns": None, "bytes": 1000},
    ]
    trips = [
        {
            "flow": "bulk/1",
            "t_ns": t * 10 * MS,
            "half": "receiver",
            "method": "acknowledgement",
            "rtt_ns": (20 + t) * MS,
        }
        for t in times
    ]  # fmt: skip
    network = scenario(
        {"bulk": TCP, "ping": PING, "web": WEB, "test": NETALYZR},
        duration_s=2,
        queue=pfifo(int(label.removesuffix("p"))),
    )
    return HandmadeRun(
        network,
        {
            "queues": queues,
            "flows": flows,
            "transfers": pages,
            "round_trips": trips,
            "estimates": estimates("test"),
            "probes": probes([20, 30, None, 50, 60.0 + seed - 1]),
        },
        id=f"limit-{label}-sim-s{seed}-0abc1234",
        seed=seed,
        point={KEY: label},
        position=LABELS.index(label),
        experiment=experiment,
        **{"document": document(), "expectations": EXPECTATIONS} | changes,
    )


def stored(runs: list[HandmadeRun], results: Path) -> Result:
    """The runs written into `results` and read again."""
    return Result([Run(run.write(results)) for run in runs])


def built(directory: Path, runs: list[HandmadeRun] | None = None, *, stills: bool = False) -> Path:
    """A page in `directory/report` of runs in `directory/results`."""
    result = stored(runs or [run(label) for label in LABELS], directory / "results")
    return report.build([result], directory / "report", stills=stills)


def worded(directory: Path, runs: list[HandmadeRun]) -> Path:
    """The same with a single figure, because drawing takes most of the time; for tests of a page's text."""
    for each in runs:
        each.document = {**each.document, "figures": ["rtt_cdf"]}
    return built(directory, runs)


def inflated(text: str) -> str:
    """A text that a page holds compressed."""
    return zlib.decompress(b64decode(text)).decode()


def specs(page: str) -> list[str]:
    """The specifications of a page's charts, as JSON."""
    return [inflated(found) for found in re.findall(r'<script type="text/plain" class="spec">([^<]*)</script>', page)]
