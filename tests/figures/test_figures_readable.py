"""Figures stay readable whatever is drawn: many series, many columns, long names, small differences, two directions."""

import itertools
import json
import re
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import vl_convert
from figure_specs import data_of, layers, pinged, spec_of, with_everything
from handmade import PING, SECOND, TCP, HandmadeResult, HandmadeRun, Rows, probes, scenario, sweep
from matrices import competing
from PIL import Image

from bufferscope import figures
from bufferscope.figures import labels, lettering, pictures, style
from bufferscope.figures.labelled import Mark, Plane, PlotAxis, Surroundings, placed
from bufferscope.model.figure_names import FigureName

Spec = dict[str, Any]
OVER_TIME = ("queue_length", "rtt", "cwnd", "goodput", "download_time", "round_trips")
WITH_LINES = (*OVER_TIME, "rtt_cdf", "receive_window", "rtt_window")


def many(count: int) -> HandmadeResult:
    return sweep([f"{10 * (number + 1)}p" for number in range(count)], with_everything)


@pytest.mark.parametrize("name", WITH_LINES)
def test_more_points_than_colours_have_a_panel_each_with_the_same_axes(name: str) -> None:
    eight, nine = spec_of(many(8), name), spec_of(many(9), name)
    assert "layer" in eight
    assert [panel["title"]["text"] for panel in nine["concat"]] == [f"{10 * n}p" for n in range(1, 10)]
    assert nine["resolve"]["scale"]["y"] == "shared"
    colours = [layer["encoding"].get("color") for panel in nine["concat"] for layer in panel["layer"]]
    assert colours == [None] * len(colours), "no colour stands for two points"
    for panel in nine["concat"]:
        sources = {(layer.get("data") or panel["data"])["name"] for layer in panel["layer"]}
        names = {row["point"] for source in sources for row in nine["datasets"][source] if "point" in row}
        assert names <= {panel["title"]["text"]}


@pytest.mark.parametrize("count", [3, 8, 28])
def test_lanes_of_losses_leave_most_of_the_plot_to_the_round_trips(count: int) -> None:
    result = sweep([str(n) for n in range(count)], lambda _: pinged([10, 20, None, 40]))
    spec = figures.draw(result, "rtt").to_dict(validate=False)
    plots = spec.get("concat", [spec])
    for plot in plots:
        domains = [layer["encoding"]["y"]["scale"]["domain"] for layer in plot["layer"]
                   if layer["encoding"].get("y", {}).get("field") == "rtt_ms"]  # fmt: skip
        assert all(40 / domain[1] > 0.6 for domain in domains)
        ticks = [layer["encoding"]["y"]["value"] for layer in plot["layer"] if layer["mark"]["type"] == "tick"]
        assert ticks
        assert max(ticks) < 0.35 * plot["height"]


def test_of_series_without_panels_no_two_look_alike() -> None:
    runs = []
    for queue in range(12):
        for load in ("1", "2"):
            run = pinged([10.0 + queue, 20])
            run.point = {"link.bottleneck.queue.limit": f"{queue}p", "traffic.ping.interval": load}
            run.id = f"{queue}-{load}"
            runs.append(run)
    spec = spec_of(HandmadeResult(runs), "rtt_cdf_panels")
    encoding = spec["concat"][0]["layer"][0]["encoding"]
    names, dashes = encoding["color"]["scale"]["domain"], encoding["strokeDash"]["scale"]["range"]
    looks = {(place % len(style.LIGHT.palette), tuple(dash)) for place, dash in enumerate(dashes)}
    assert len(looks) == len(names) == 12


@pytest.mark.parametrize(("name", "repeated"), [(name, n) for name in figures.NAMES for n in (1, 3, 9)])
def test_every_legend_can_be_clicked(name: FigureName, repeated: int) -> None:
    """Vega makes the entries of a legend interactive if a choice is bound to it."""
    runs = [run for seed in range(1, repeated + 1) for run in _seeded(seed)]
    try:
        spec = figures.draw(HandmadeResult(runs), name).to_dict()
    except figures.NoDataError:
        assert name in ("reaction_time", "share_matrix", "jain_matrix", "rtt_members", "live")
        return
    legends = _legends(vl_convert.vegalite_to_vega(spec))
    assert all(legend["encode"]["symbols"].get("interactive") for legend in legends)
    assert not legends or "_legend" in json.dumps(spec["params"]) or '"bind": "legend"' in json.dumps(spec["params"])


def _seeded(seed: int) -> list[HandmadeRun]:
    runs = many(2).runs
    for run in runs:
        run.seed, run.id = seed, f"{run.id}-{seed}"
    return runs


def _legends(group: Spec) -> list[Spec]:
    return [*group.get("legends", []), *(each for mark in group.get("marks", []) for each in _legends(mark))]


def test_names_beside_close_marks_do_not_lie_on_one_another() -> None:
    plane = Plane(PlotAxis(0, 100, 270), PlotAxis(0, 10, style.HEIGHT))
    marks = [Mark(50 + number / 4, 5 + number / 40, f"a queue of {100 * number}p") for number in range(20)]
    boxes = [labels.box(label) for label in placed(marks, plane, [""], Surroundings())]
    assert sum(len(label.members) for label in placed(marks, plane, [""], Surroundings())) == 20
    for (left, top, right, bottom), other in itertools.combinations(boxes, 2):
        assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top


def test_goodput_against_delay_names_only_the_best_of_many() -> None:
    def run(label: str) -> HandmadeRun:
        number = int(label[:-1])
        flows: Rows = [{"flow": "bulk/1", "t_ns": t * SECOND, "delivered_bytes": t * 10_000 * number} for t in (0, 2)]
        network = scenario({"bulk": TCP, "ping": PING}, duration_s=2)
        return HandmadeRun(network, {"flows": flows, "probes": probes([500.0 - number] * 3)})

    spec = spec_of(sweep([f"{n}p" for n in range(1, 31)], run), "goodput_delay")
    words = [row for layer in layers(spec, "text") for row in data_of(spec, layer)["words"]]
    assert words == ["30p"], "it has the most goodput and the least delay"
    assert "no other point beats" in " ".join(spec["title"]["subtitle"])


def matrix_of(columns: list[str], value: Any = lambda *_: 20.0) -> HandmadeResult:
    runs = []
    for control, column in itertools.product(("reno", "bbr"), columns):
        run = competing(1_000_000, 0, [value(control, column)] * 3, rivals=0)
        run.point = {"traffic.own.congestion": control, "link.bottleneck.queue.limit": column}
        run.id = f"{control}-{column}"
        runs.append(run)
    return HandmadeResult(runs)


def test_a_matrix_of_many_columns_is_turned_so_that_its_numbers_can_be_read() -> None:
    few = spec_of(matrix_of([f"{n}p" for n in range(6)]), "rtt_matrix")
    lots = spec_of(matrix_of([f"{n}p" for n in range(20)]), "rtt_matrix")
    fields = [
        [(layer["encoding"]["x"]["field"], layer["encoding"]["y"]["field"]) for layer in spec["layer"]]
        for spec in (few, lots)
    ]
    assert fields == [[("column", "row")] * 2, [("row", "column")] * 2]
    assert lots["height"] == 20 * 30
    assert len(re.findall(">20<", pictures.svg(lots))) == 40


@pytest.mark.parametrize("name", ["rtt_matrix", "goodput_matrix"])
def test_cells_that_hardly_differ_have_colours_that_hardly_differ(name: str) -> None:
    runs = matrix_of(["a", "b"]).runs
    for run, mbit in zip(runs, (9.55, 9.56, 9.55, 9.56), strict=True):
        run.rows["flows"] = [dict(row, delivered_bytes=round(mbit * 125_000 * row["t_ns"] / SECOND))
                             for row in run.rows["flows"]]  # fmt: skip
        run.rows["probes"] = probes([mbit] * 3)
    low, high = spec_of(HandmadeResult(runs), name)["layer"][0]["encoding"]["color"]["scale"]["domain"]
    assert (high - low) > 50 * (9.56 - 9.55)


def both_ways(mbit: int) -> HandmadeRun:
    """Traffic of 5 Mbit/s up and 20 Mbit/s down; the queue is up."""
    run = with_everything(f"{mbit}p")
    down = dict(run.scenario["traffic"][0], name="down") | {"from": 2, "to": 0}
    run.scenario["traffic"].append(down)
    run.rows["flows"] = [
        {"flow": f"{name}/1", "t_ns": t * SECOND // 100, "delivered_bytes": t * rate * 1_250}
        for name, rate in (("bulk", 5), ("down", 20))
        for t in range(201)
    ]
    run.rows["transfers"] = []
    return run


def test_the_goodput_below_a_rate_is_of_the_traffic_in_its_direction() -> None:
    spec = spec_of(HandmadeResult(sweep(["50p", "100p"], lambda label: both_ways(int(label[:-1]))).runs), "goodput")
    drawn = data_of(spec, layers(spec, "line")[-1])["mbit"]
    assert drawn.max() == pytest.approx(5, rel=0.5)
    told = " ".join(spec["title"]["subtitle"])
    assert "the traffic through r1>h2 together, without" in told
    assert "down" in told
    assert "retransmission" not in told


def test_a_line_of_the_other_direction_is_not_bound_by_the_rate() -> None:
    told = " ".join(spec_of(HandmadeResult([both_ways(50)]), "goodput")["title"]["subtitle"])
    assert "Dashed: rate of r1>h2;" in told
    assert "not bound by it" in told
    assert "retransmission" not in told


def test_points_with_different_rates_have_a_dashed_line_each() -> None:
    def run(label: str) -> HandmadeRun:
        made = with_everything(label)
        made.rows["capacity"] = [{"t_ns": 0, "port": "r1>h2", "rate_bps": int(label[:-1]) * 1_000_000}]
        return made

    spec = spec_of(sweep(["50p", "100p"], run), "goodput")
    (dashed,) = [layer for layer in layers(spec, "line") if layer["mark"].get("style") == "bound"]
    assert set(data_of(spec, dashed).select("point", "mbit").rows()) == {("50p", 50.0), ("100p", 100.0)}


@pytest.mark.parametrize("count", [3, 8, 12])
def test_a_saved_picture_fits_a_page_at_144_pixels_per_inch(count: int, tmp_path: Path) -> None:
    labels_ = [f"a queue with a rather long name {number}" for number in range(count)]
    chart = figures.draw(sweep(labels_, lambda _: pinged([10, 20, 30])), "rtt")
    for target in (str(tmp_path / "a.png"), tmp_path / "b.png")[:: 1 if count == 3 else 2]:
        chart.save(target)
        with Image.open(target) as image:
            assert image.info["dpi"] == pytest.approx((144, 144), abs=0.1)
            assert image.width < 2 * 1000
    kept = BytesIO()
    chart.save(kept, format="png", ppi=72)
    assert Image.open(kept).width < 1000


def test_a_saved_page_is_interactive(tmp_path: Path) -> None:
    chart = figures.draw(many(2), "rtt")
    chart.save(str(tmp_path / "rtt.html"))
    chart.save(str(tmp_path / "rtt.svg"))
    assert "zoom_time_s" in (tmp_path / "rtt.html").read_text()
    assert (tmp_path / "rtt.svg").read_text().startswith("<svg")


def test_every_text_of_a_picture_has_the_same_length_in_every_font() -> None:
    picture = pictures.svg(spec_of(many(3), "rtt"))
    texts = re.findall(r"<text ([^>]*)>([^<]+)</text>", picture)
    assert len(texts) > 10
    for attributes, words in texts:
        assert "Arial" in attributes
        assert len(words) == 1 or 'lengthAdjust="spacingAndGlyphs"' in attributes, words


def test_widths_are_those_of_helvetica() -> None:
    # Helvetica.afm: R 722, T 611, ... in thousandths of the size; Helvetica-Bold.afm: R 722, t 333.
    assert lettering.width("RTT", 10) == pytest.approx(7.22 + 2 * 6.11)
    assert lettering.width("Rt", 10, bold=True) == pytest.approx(7.22 + 3.33)
    assert lettering.width("\N{SNOWMAN}", 10) is None


@pytest.mark.parametrize("name", OVER_TIME)
def test_the_time_axis_begins_at_zero_and_ends_with_the_run(name: str) -> None:
    spec = spec_of(many(2), name)
    (period,) = [each for each in spec["params"] if each["name"] == "zoom_time_s"]
    assert period["value"] is None
    domains = [_domain(layer) for layer in spec["layer"] if _domain(layer)]
    assert [[end["expr"].split(" : ")[1] for end in ends] for ends in domains] == [["0", "2"]] * len(domains)
    still = [_domain(layer) for layer in pictures.still(spec)["layer"] if _domain(layer)]
    assert still == [[0, 2]] * len(still)


def _domain(layer: Spec) -> Any:
    return layer["encoding"].get("x", {}).get("scale", {}).get("domain")
