"""Results for figures, and what is in the charts that are drawn of them."""

from typing import Any, cast

import polars as pl
from handmade import (
    MS,
    MSS,
    NETALYZR,
    PING,
    SECOND,
    TCP,
    WEB,
    HandmadeResult,
    HandmadeRun,
    Rows,
    estimates,
    pfifo,
    probes,
    scenario,
)

from bufferscope import figures
from bufferscope.model.figure_names import FigureName

Spec = dict[str, Any]


def spec_of(result: HandmadeResult, name: str) -> Spec:
    spec: Spec = figures.draw(result, cast("FigureName", name)).to_dict()
    return spec


def data_of(spec: Spec, layer: Spec) -> pl.DataFrame:
    source = layer.get("data") or spec["data"]  # Altair hoists data that all layers share
    return pl.DataFrame(spec["datasets"][source["name"]])


def layers(spec: Spec, mark: str) -> list[Spec]:
    """The layers of a mark, except those for the pointer."""
    seen = [layer for layer in spec["layer"] if layer.get("name") not in ("hover", "drag", "crosshair")]
    return [layer for layer in seen if layer["mark"]["type"] == mark]


def with_everything(label: str = "100p") -> HandmadeRun:
    """A run of 2 s with data for every figure."""
    times = range(201)
    queues = [{"t_ns": t * 10 * MS, "packets": t % 50, "bytes": t % 50 * 1514, "sent_bytes": t * 12_500} for t in times]
    flows = [
        {"flow": "bulk/1", "t_ns": t * 10 * MS, "cwnd_bytes": (t + 10) * MSS, "delivered_bytes": t * 10_000,
         "ssthresh_bytes": None if t < 100 else 50 * MSS, "inflight_bytes": (t + 8) * MSS, "srtt_ns": (20 + t) * MS}
        for t in times
    ]  # fmt: skip
    pages = [
        {"traffic": "web", "flow": "web/1", "started_ns": 0, "finished_ns": SECOND, "bytes": 1000},
        {"traffic": "web", "flow": "web/2", "started_ns": SECOND, "finished_ns": None, "bytes": 1000},
    ]
    limit = int(label.removesuffix("p"))
    return HandmadeRun(
        scenario({"bulk": TCP, "ping": PING, "web": WEB, "test": NETALYZR}, duration_s=2, queue=pfifo(limit)),
        {
            "queues": queues,
            "flows": flows,
            "transfers": pages,
            "estimates": estimates("test"),
            "round_trips": trips([20, 30, 25]),
            "probes": probes([20, 30, None, 50, 60, *[40] * 20]),
        },
    )


def trips(rtts: list[float], half: str = "receiver", method: str = "acknowledgement") -> Rows:
    """Round trips of `bulk/1`, one every 100 ms."""
    return [
        {"flow": "bulk/1", "t_ns": n * 100 * MS, "half": half, "method": method, "rtt_ns": round(rtt * MS)}
        for n, rtt in enumerate(rtts)
    ]


def pinged(rtts: list[float | None], seed: int = 1) -> HandmadeRun:
    return HandmadeRun(scenario({"ping": PING}), {"probes": probes(rtts)}, seed=seed)
