"""Results of sweeps, which matrices show."""

import itertools
from typing import Any

from handmade import PING, SECOND, TCP, HandmadeResult, HandmadeRun, Rows, probes, scenario

from bufferscope.figures import style

COLOURS = {
    "rtt_matrix": style.WORSE,
    "goodput_matrix": style.BETTER,
    "jain_matrix": style.BETTER,
    "share_matrix": "diverging",
}

CONTROLS, QUEUES = ["reno", "bbr"], ["20p", "1000p"]


KEYS = ("traffic.own.congestion", "traffic.rival.flows", "link.bottleneck.queue.limit")


def competing(own: int, rival: int, rtts: list[float | None], rivals: int = 1) -> HandmadeRun:
    """A run of 1 s in which the two traffics deliver this many bytes."""
    traffic = {"own": TCP, "rival": {**TCP, "flows": rivals}, "ping": PING}
    flows: Rows = [
        {"flow": f"{name}/1", "t_ns": t, "delivered_bytes": bytes_ * t // SECOND}
        for name, bytes_ in [("own", own), *([("rival", rival)] if rivals else [])]
        for t in (0, SECOND)
    ]
    return HandmadeRun(scenario(traffic, duration_s=1), {"flows": flows, "probes": probes(rtts)})


def result_of(make: Any, keys: tuple[str, ...] = KEYS) -> HandmadeResult:
    """A run for each combination; `make` gets the chosen values."""
    runs = []
    for choice in itertools.product(CONTROLS, ["0", "1"], QUEUES):
        run = make(*choice)
        run.point = dict(zip(keys, choice, strict=True))
        run.id = "-".join(choice)
        runs.append(run)
    return HandmadeResult(runs)


def typical(control: str, rivals: str, queue: str) -> HandmadeRun:
    """BBR takes three quarters; a queue of 1000 packets is ten times as long as one of 20; alone there is no rival."""
    own = 750_000 if control == "bbr" else 250_000
    rtt = 400.0 if queue == "1000p" else 40.0
    return competing(own, 1_000_000 - own, [rtt, rtt + 2, rtt + 4], rivals=int(rivals))
