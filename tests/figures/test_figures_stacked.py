"""Figures of panels below one another: throughput and delay against packets in flight, and smoke."""

import itertools
import json
import re
from collections.abc import Sequence
from typing import Any, cast

import pytest
from handmade import MSS, PING, SECOND, TCP, HandmadeResult, HandmadeRun, pfifo, probes, scenario, sweep

from bufferscope import figures
from bufferscope.figures import pictures
from bufferscope.figures.charts import smoke
from bufferscope.model.figure_names import FigureName

Spec = dict[str, Any]
WINDOW, QUEUE = "traffic.bulk.window", "link.bottleneck.forward.queue"
DEEP, SHORT = "large buffer", "no buffer"
NAMES = ("throughput_delay", "smoke")


def spec_of(result: HandmadeResult, name: str) -> Spec:
    spec: Spec = figures.draw(result, cast("FigureName", name)).to_dict()
    return spec


def rows_of(spec: Spec, panel: Spec, layer: Spec) -> list[dict[str, Any]]:
    source = layer.get("data") or panel.get("data") or spec["data"]
    rows: list[dict[str, Any]] = spec["datasets"][source["name"]]
    return rows


def layer_of(panel: Spec, mark: str) -> Spec:
    found: Spec = next(layer for layer in panel["layer"] if layer["mark"]["type"] == mark)
    return found


def windowed(packets: int, mbit: float, rtts: Sequence[float | None], **point: str) -> HandmadeRun:
    """A run of 1 s with this many packets in flight."""
    window = {"flow": "bulk/1", "inflight_bytes": packets * MSS}
    flows = [window | {"t_ns": t, "delivered_bytes": round(mbit * 125_000) * t // SECOND} for t in (0, SECOND)]
    rows = {"flows": flows, "probes": probes(list(rtts))}
    return HandmadeRun(scenario({"bulk": TCP, "ping": PING}, duration_s=1), rows, point=point)


def curves() -> HandmadeResult:
    """Two queues, three windows: the path holds 20 packets of 40 ms."""
    runs = []
    for queue, window in itertools.product((DEEP, SHORT), (10, 20, 40)):
        rate = min(window, 20) / 2 if queue == DEEP else 100 / window
        rtt = 40.0 * max(1, window / 20) if queue == DEEP else 40.0
        run = windowed(window, rate, [rtt] * 3)
        run.point, run.id = {QUEUE: queue, WINDOW: f"{window}p"}, f"{queue}-{window}"
        runs.append(run)
    return HandmadeResult(runs)


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_of_panels_draws_one_point_and_several_without_naming_a_colour(name: str) -> None:
    one = HandmadeResult([windowed(10, 5, [40, 50])])
    for result in (one, sweep(["50p", "100p"], lambda label: windowed(10, 5, [40, 50]))):
        spec = spec_of(result, name)
        assert spec["title"]["text"]
        assert spec["description"].endswith(".")
        assert pictures.svg(spec).startswith("<svg")
        del spec["config"]
        assert not re.search(r'"#[0-9a-fA-F]{3,8}"', json.dumps(spec))


@pytest.mark.parametrize("name", NAMES)
def test_the_page_can_fit_panels_below_one_another_into_its_width(name: str) -> None:
    assert spec_of(curves(), name)["usermeta"]["panels"]["columns"] == 1


@pytest.mark.parametrize("name", NAMES)
def test_without_a_prober_there_are_no_panels(name: FigureName) -> None:
    with pytest.raises(figures.NoDataError, match="no traffic of kind ping or irtt"):
        figures.draw(HandmadeResult([HandmadeRun(scenario({"bulk": TCP}))]), name)


def test_throughput_stands_above_delay_over_the_same_packets_in_flight() -> None:
    spec = spec_of(curves(), "throughput_delay")
    throughput, delay = spec["concat"]
    assert [layer_of(panel, "point")["encoding"]["y"]["title"] for panel in (throughput, delay)] == [
        "goodput (Mbit/s)",
        "median RTT (ms)",
    ]
    for panel in (throughput, delay):
        code = layer_of(panel, "line")["encoding"]
        assert code["x"]["scale"]["domain"] == [0, pytest.approx(41.2)]
        assert code["color"]["scale"]["domain"] == [DEEP, SHORT]
    drawn = [
        (row["series"], row["in_flight"], row["mbit"])
        for row in rows_of(spec, throughput, layer_of(throughput, "point"))
    ]
    assert drawn == [(DEEP, 10, 5), (DEEP, 20, 10), (DEEP, 40, 10), (SHORT, 10, 10), (SHORT, 20, 5), (SHORT, 40, 2.5)]
    delays = [row["rtt_ms"] for row in rows_of(spec, delay, layer_of(delay, "point"))]
    assert delays == [40, 40, 80, 40, 40, 40]


def test_the_rate_of_the_bottleneck_is_drawn_where_it_is_constant() -> None:
    spec = spec_of(curves(), "throughput_delay")
    panel = spec["concat"][0]
    assert rows_of(spec, panel, layer_of(panel, "rule")) == [{"mbit": 10.0}]
    changing = windowed(10, 5, [40])
    changing.scenario["links"][1]["forward"]["rate"].append({"from_ns": SECOND // 2, "bits_per_second": 1_000_000})
    changing.scenario["links"][1]["reverse"]["rate"].append({"from_ns": SECOND // 2, "bits_per_second": 1_000_000})
    assert all(
        layer["mark"]["type"] != "rule"
        for layer in spec_of(HandmadeResult([changing]), "throughput_delay")["concat"][0]["layer"]
    )


def test_points_without_a_swept_window_are_marks_without_a_line() -> None:
    spec = spec_of(sweep(["50p", "100p"], lambda label: windowed(10, 5, [40, 50])), "throughput_delay")
    assert {layer["mark"]["type"] for panel in spec["concat"] for layer in panel["layer"]} == {"point", "rule"}


def test_a_median_among_lost_probes_has_a_throughput_but_no_delay() -> None:
    result = sweep(["50p", "100p"], lambda label: windowed(10, 5, [40, 50] if label == "50p" else [None, None, 40]))
    spec = spec_of(result, "throughput_delay")
    throughput, delay = spec["concat"]
    assert len(rows_of(spec, throughput, layer_of(throughput, "point"))) == 2
    assert [row["point"] for row in rows_of(spec, delay, layer_of(delay, "point"))] == ["50p"]
    assert any("most probes were lost: 100p." in line for line in spec["title"]["subtitle"])


def pinged(rtts: Sequence[float | None], interval_ms: int = 100, duration_s: float = 10) -> HandmadeRun:
    return HandmadeRun(
        scenario({"ping": PING}, duration_s=duration_s, queue=pfifo(50)), {"probes": probes(list(rtts), interval_ms)}
    )


def test_smoke_summarizes_twenty_pings_by_their_median_and_their_spread() -> None:
    rows = smoke.intervals(figures.source.points(HandmadeResult([pinged([*range(1, 21), *([7.0] * 20)])]))[0])
    first, second = rows.iter_rows(named=True)
    assert (first["from"], first["to"], first["pings"], first["lost"]) == (0, 2, 20, 0)
    assert (first["p0"], first["p50"], first["p100"]) == (1, 10.5, 20)
    assert (first["p25"], first["p75"]) == (5.75, 15.25)  # linear interpolation between the order statistics
    assert (second["from"], second["to"]) == (2, 10)  # the last one reaches to the end of the run
    assert {second[f"p{percent}"] for percent in (0, 10, 25, 50, 75, 90, 100)} == {7}


@pytest.mark.parametrize(
    ("lost", "loss"), [(0, "none"), (1, "up to 5 %"), (2, "up to 20 %"), (4, "up to 20 %"), (5, "more"), (20, "more")]
)
def test_the_colour_of_smoke_tells_how_many_of_twenty_pings_were_lost(lost: int, loss: str) -> None:
    point = figures.source.points(HandmadeResult([pinged([None] * lost + [10.0] * (20 - lost))]))[0]
    (row,) = smoke.intervals(point).iter_rows(named=True)
    assert (row["lost"], row["loss"]) == (lost, loss)
    assert row["p50"] == (10 if lost < 20 else None)


def test_an_interval_without_an_answer_stays_empty_in_the_smoke() -> None:
    spec = spec_of(HandmadeResult([pinged([10.0] * 20 + [None] * 20 + [12.0] * 20)]), "smoke")
    (panel,) = spec["concat"]
    assert [row["from"] for row in rows_of(spec, panel, layer_of(panel, "rule"))] == [0, 4]


def test_smoke_without_any_answer_says_so() -> None:
    with pytest.raises(figures.NoDataError, match="no probe was answered"):
        figures.draw(HandmadeResult([pinged([None] * 20)]), "smoke")


def test_each_point_has_its_panel_of_smoke_with_its_median() -> None:
    result = sweep(["50p", "100p"], lambda label: pinged([100.0 if label == "50p" else 1000.0] * 40))
    spec = spec_of(result, "smoke")
    assert [panel["title"]["text"] for panel in spec["concat"]] == ["50p (median 100 ms)", "100p (median 1000 ms)"]
    with pytest.raises(figures.NoDataError, match="13 points are too many panels"):
        figures.draw(sweep([f"{n}p" for n in range(1, 14)], lambda label: pinged([1.0])), "smoke")


def test_smoke_over_a_day_counts_hours_and_puts_more_pings_into_an_interval() -> None:
    day = 24 * 3600
    spec = spec_of(HandmadeResult([pinged([20.0] * 14_400, interval_ms=6000, duration_s=day)]), "smoke")
    (panel,) = spec["concat"]
    x = layer_of(panel, "rule")["encoding"]["x"]
    assert (x["title"], x["scale"]["domain"]) == ("time (h)", [0, 24])
    rows = rows_of(spec, panel, layer_of(panel, "rule"))
    assert len(rows) == 360
    assert {row["pings"] for row in rows} == {40}
    assert rows[-1]["to"] == 24
