"""Every figure shows what the records contain: its marks, values, axes and texts."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from figure_specs import Spec, data_of, layers, pinged, spec_of, trips, with_everything
from handmade import (
    MS,
    MSS,
    PING,
    SCHEMAS,
    SECOND,
    TCP,
    WEB,
    HandmadeResult,
    HandmadeRun,
    Rows,
    pfifo,
    probes,
    scenario,
    sweep,
)

from bufferscope import figures
from bufferscope.figures import pictures
from bufferscope.figures.charts.goodput import binned
from bufferscope.figures.choosing import chosen
from bufferscope.figures.declaring import declaration
from bufferscope.model.figure_names import FigureName


@pytest.mark.parametrize("name", figures.NAMES)
def test_loading_the_file_of_a_figure_does_not_hide_its_function(name: str) -> None:
    assert figures.FIGURES[name] is getattr(figures, name)
    assert callable(getattr(figures, name))


LABELS = ["50p", "100p", "20p"]
OF_POINTS = [name for name in figures.NAMES if declaration(name).shape == "plot"]
"""The figures that show points side by side; those with one cell per point, with sizes or with panels have tests of
their own."""


def essentials(spec: Spec) -> list[tuple[str, dict[str, str]]]:
    """Mark and encoded fields of each layer except the crosshair and the shade of a drag."""
    return [
        (
            layer["mark"]["type"],
            {channel: code["field"] for channel, code in layer["encoding"].items() if "field" in code},
        )
        for layer in spec["layer"]
        if layer.get("name") not in ("drag", "crosshair")
    ]


@pytest.mark.parametrize("name", OF_POINTS)
def test_every_figure_draws_one_and_several_points(name: str) -> None:
    for result in (HandmadeResult([with_everything()]), sweep(LABELS, with_everything)):
        spec = spec_of(result, name)
        assert spec["title"]["text"]
        assert spec["description"].endswith(".")
        assert pictures.svg(spec).startswith("<svg")


@pytest.mark.parametrize("name", OF_POINTS)
def test_points_have_the_same_colours_in_the_order_of_the_sweep_in_every_figure(name: str) -> None:
    spec = spec_of(sweep(LABELS, with_everything), name)
    domains = [layer["encoding"]["color"]["scale"]["domain"] for layer in spec["layer"] if "color" in layer["encoding"]]
    assert domains
    assert all(domain == LABELS for domain in domains)


@pytest.mark.parametrize("name", OF_POINTS)
def test_a_figure_names_no_colour_so_that_light_and_dark_can_draw_it(name: str) -> None:
    spec = spec_of(sweep(LABELS, with_everything), name)
    del spec["config"]
    assert not re.search(r'"#[0-9a-fA-F]{3,8}"', json.dumps(spec))


@pytest.mark.parametrize("name", OF_POINTS)
def test_axis_titles_have_units(name: str) -> None:
    for layer in spec_of(sweep(LABELS, with_everything), name)["layer"]:
        for channel in ("x", "y"):
            code = layer["encoding"].get(channel, {})
            if code.get("type") == "quantitative":
                assert re.search(r"\(.+\)$", code["title"])


def test_each_figure_lives_in_a_file_of_its_name() -> None:
    directory = Path(str(figures.__file__)).parent / "charts"
    assert all((directory / f"{name}.py").is_file() for name in figures.NAMES)
    assert list(figures.FIGURES) == list(figures.NAMES)
    assert all(function.__name__ == name for name, function in figures.FIGURES.items())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("queue_length", "no port of the network has a rate"),
        ("rtt", "no traffic of kind ping or irtt"),
        ("rtt_cdf", "no traffic of kind ping or irtt"),
        ("rtt_by_point", "no traffic of kind ping or irtt"),
        ("rtt_equation", "no traffic of kind ping or irtt"),
        ("goodput_delay", "no traffic of kind ping or irtt"),
        ("cwnd", "no sample of a TCP connection has a congestion window"),
        ("rtt_window", "no samples of a TCP connection that has measured"),
        ("round_trips", "no round trips of a TCP connection"),
        ("goodput", "no samples of a flow"),
        ("download_time", "no transfer was begun"),
    ],
)
def test_a_figure_without_data_says_what_is_missing(name: FigureName, words: str) -> None:
    network = scenario({})
    network["links"] = network["links"][:1]
    with pytest.raises(figures.NoDataError, match=words):
        figures.draw(HandmadeResult([HandmadeRun(network)]), name)


@pytest.mark.parametrize("name", figures.NAMES)
def test_a_figure_of_a_table_that_is_not_recorded_says_so(name: FigureName) -> None:
    for table in figures.NEEDED[name]:
        run = with_everything()
        run.scenario["record"] = [other for other in SCHEMAS if other != table]
        with pytest.raises(figures.NoDataError, match=rf"^{name}: {table} (is|are) not recorded: record = \["):
            figures.draw(HandmadeResult([run]), name)
        assert name not in chosen([run])


@pytest.mark.parametrize("name", OF_POINTS)
def test_a_figure_needs_no_other_tables(name: FigureName) -> None:
    run = with_everything()
    run.scenario["record"] = list(figures.NEEDED[name])
    run.rows = {table: rows for table, rows in run.rows.items() if table in figures.NEEDED[name]}
    figures.draw(HandmadeResult([run]), name)


@pytest.mark.parametrize("name", ["rtt", "rtt_cdf", "rtt_by_point"])
def test_when_all_probes_are_lost_there_is_no_figure_of_round_trip_times(name: FigureName) -> None:
    with pytest.raises(figures.NoDataError, match="answered"):
        figures.draw(HandmadeResult([pinged([None, None])]), name)


def test_queue_length_shows_samples_and_limits() -> None:
    spec = spec_of(sweep(LABELS, with_everything), "queue_length")
    assert spec["title"]["text"] == "Queue at r1>h2"
    assert spec["title"]["subtitle"] == ["Dashed: the queue's limit."]
    fields = {"x": "time_s", "y": "packets", "color": "point"}
    assert essentials(spec) == [
        ("line", fields),
        ("rule", {"y": "packets", "color": "point"}),
        ("text", {"y": "at", "color": "point", "text": "point"}),
        ("point", fields),
    ]
    rule = data_of(spec, layers(spec, "rule")[0])
    # 49 packets at most were queued: limits of 20, 50 and 98 at most are near enough to be drawn, 100 is not.
    assert rule.rows() == [("50p", 50), ("20p", 20)]


def test_queue_length_tells_a_limit_that_is_too_far_away() -> None:
    spec = spec_of(HandmadeResult([with_everything("1000p")]), "queue_length")
    assert not layers(spec, "rule")
    assert spec["title"]["subtitle"] == ["Limit of 1,000 packets, above the range shown."]


def test_the_queue_that_is_shown_is_the_one_where_packets_wait_longest() -> None:
    run = with_everything()
    more = [dict(row, port="h2>r1", bytes=row["bytes"] * 2) for row in run.rows["queues"]]
    run.rows["queues"] = run.rows["queues"] + more
    assert spec_of(HandmadeResult([run]), "queue_length")["title"]["text"] == "Queue at h2>r1"


def test_a_lost_probe_is_a_gap_in_the_line_and_a_mark_above_it() -> None:
    spec = spec_of(HandmadeResult([pinged([20, None, None, 30, 40])]), "rtt")
    line = data_of(spec, layers(spec, "line")[0])
    assert line["rtt_ms"].to_list() == [20, None, None, 30, 40]
    assert "break-paths" in layers(spec, "line")[0]["mark"]["invalid"]
    (tick,) = layers(spec, "tick")
    assert data_of(spec, tick)["time_s"].to_list() == [0.1, 0.2]
    assert spec["title"]["subtitle"] == ["Marks at the top: lost probes (2 of 5)."]


def test_marks_of_lost_probes_stand_above_the_highest_answer() -> None:
    spec = spec_of(sweep(["a", "b"], lambda _: pinged([20, None, 40])), "rtt")
    top = layers(spec, "line")[0]["encoding"]["y"]["scale"]["domain"][1]
    lowest_mark = max(tick["encoding"]["y"]["value"] for tick in layers(spec, "tick"))
    height_of_40_ms = spec["height"] * (1 - 40 / top)
    assert lowest_mark < height_of_40_ms


def test_many_lost_probes_share_marks_and_none_is_forgotten() -> None:
    run = HandmadeRun(scenario({"ping": PING}, duration_s=1), {"probes": probes([5.0, *[None] * 5000], interval_ms=0)})
    run.rows["probes"] = [dict(row, sent_ns=n * SECOND // 5001) for n, row in enumerate(run.rows["probes"])]
    spec = spec_of(HandmadeResult([run]), "rtt")
    marks = data_of(spec, layers(spec, "tick")[0])
    assert marks["lost"].sum() == 5000
    assert marks.height <= 720


def test_round_trip_times_get_a_logarithmic_axis_when_they_span_a_factor_of_50() -> None:
    near, far = (spec_of(HandmadeResult([pinged([10.0, high])]), "rtt") for high in (400.0, 600.0))
    assert "type" not in layers(near, "line")[0]["encoding"]["y"]["scale"]
    assert layers(far, "line")[0]["encoding"]["y"]["scale"]["type"] == "log"
    assert "Logarithmic scale." in far["title"]["subtitle"][0]


def test_cwnd_is_in_packets_and_ssthresh_is_dashed() -> None:
    spec = spec_of(HandmadeResult([with_everything()]), "cwnd")
    assert essentials(spec)[0] == ("line", {"x": "time_s", "y": "packets", "strokeDash": "what"})
    assert [detail["field"] for detail in layers(spec, "line")[0]["encoding"]["detail"]] == ["flow"]
    rows = data_of(spec, layers(spec, "line")[0])
    assert rows.filter(what="cwnd")["packets"].max() == 210
    assert set(rows.filter(what="ssthresh")["packets"]) == {50}
    assert set(rows["flow"]) == {"bulk/1"}  # web connections are not drawn beside bulk ones


def test_goodput_of_equal_bins() -> None:
    # 10,000 bytes every 10 ms are 8 Mbit/s, in every one of the 120 bins of 1/60 s.
    run = with_everything()
    run.rows["transfers"] = []
    frame = binned(run)
    assert frame.height == 120
    total_bytes = float(frame["mbit"].sum()) * 1e6 / 8 * (2 / 120)
    assert total_bytes == pytest.approx(2_000_000, rel=1e-6)
    assert frame["mbit"].median() == pytest.approx(8, rel=0.25)


def test_goodput_shows_the_rate_as_it_changes() -> None:
    run = with_everything()
    run.scenario = scenario({"bulk": TCP}, duration_s=2, rate=[(0, 100_000_000), (SECOND, 1_000_000)])
    spec = spec_of(HandmadeResult([run]), "goodput")
    capacity = layers(spec, "line")[0]
    assert capacity["mark"]["interpolate"] == "step-after"
    assert data_of(spec, capacity).rows() == [(0.0, 100.0), (1.0, 1.0), (2.0, 1.0)]


def test_goodput_has_a_line_a_traffic_entry_or_a_line_a_point() -> None:
    single = spec_of(HandmadeResult([with_everything()]), "goodput")
    assert layers(single, "line")[1]["encoding"]["color"]["scale"]["domain"] == ["bulk", "web"]
    several = spec_of(sweep(LABELS, with_everything), "goodput")
    assert essentials(several)[1] == ("line", {"x": "time_s", "y": "mbit", "color": "point"})


def test_the_distribution_ends_below_100_percent_by_what_was_lost() -> None:
    spec = spec_of(HandmadeResult([pinged([10, 20, 30, None])]), "rtt_cdf")
    curve = data_of(spec, layers(spec, "line")[0])
    assert curve.select("rtt_ms", "percent").rows() == [(10, 25), (20, 50), (30, 75)]
    assert data_of(spec, layers(spec, "point")[0])["percent"].to_list() == [75]
    assert "25\N{NO-BREAK SPACE}%" in spec["title"]["subtitle"][0]


def test_the_distribution_without_loss_reaches_100_percent() -> None:
    run = HandmadeRun(scenario({"ping": PING}), {"probes": probes([float(n) for n in range(1, 5001)], interval_ms=2)})
    spec = spec_of(HandmadeResult([run]), "rtt_cdf")
    curve = data_of(spec, layers(spec, "line")[0])
    assert (curve.height, curve["percent"].max(), curve["rtt_ms"].max()) == (400, 100, 5000)
    assert spec["title"]["subtitle"] == ["No probe was lost. Logarithmic scale."]


def test_intervals_and_the_arrow_of_what_lies_among_the_lost() -> None:
    whole: list[float | None] = [float(n) for n in range(101)]
    lossy: list[float | None] = [10, 20, 30, 40, None]
    spec = spec_of(
        sweep(["whole", "lossy"], lambda label: pinged(whole if label == "whole" else lossy)), "rtt_by_point"
    )
    rows = {row["point"]: row for row in data_of(spec, spec["layer"][0]).iter_rows(named=True)}
    assert [rows["whole"][name] for name in ("p5", "p25", "p50", "p75", "p95", "max")] == [5, 25, 50, 75, 95, 100]
    assert (rows["lossy"]["p75"], rows["lossy"]["p95"], rows["lossy"]["censored"]) == (40, 40, "p95")
    assert data_of(spec, layers(spec, "text")[0])["point"].to_list() == ["lossy"]


def test_download_times_with_their_mean_and_the_unfinished_marked() -> None:
    rows: Rows = [
        {"traffic": "web", "flow": f"web/{n}", "started_ns": n * SECOND, "bytes": 1,
         "finished_ns": None if took is None else n * SECOND + took * SECOND}
        for n, took in enumerate([1, 3, None])
    ]  # fmt: skip
    spec = spec_of(HandmadeResult([HandmadeRun(scenario({"web": WEB}), {"transfers": rows})]), "download_time")
    assert data_of(spec, layers(spec, "point")[0])["seconds"].to_list() == [1, 3]
    assert data_of(spec, layers(spec, "rule")[0])["seconds"].to_list() == [2]
    assert data_of(spec, layers(spec, "tick")[0])["time_s"].to_list() == [2]


def test_the_equation_by_hand() -> None:
    # S = 1514 bytes = 12,112 bits; Q S / C = 100 * 12,112 / 10 Mbit/s = 121.12 ms; propagation 4 * 5 ms = 20 ms;
    # 2 S / C of the one link with a rate = 2.4224 ms.
    run = with_everything()
    run.rows["probes"] = probes([20, 30, None, 50, 60])
    spec = spec_of(HandmadeResult([run]), "rtt_equation")
    (predicted,) = [layer for layer in layers(spec, "point") if layer["mark"].get("style") == "predicted"]
    assert data_of(spec, predicted)["rtt_ms"].to_list() == [143.542]
    (measured,) = [layer for layer in layers(spec, "point") if layer is not predicted]
    shown = dict(data_of(spec, measured).select("what", "rtt_ms").rows())
    assert shown == {"mean": 40, "max": 60}  # of five probes one is lost: p95 lies beyond
    assert "The p95 of the probes falls among the lost probes." in " ".join(spec["title"]["subtitle"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rate": [(0, 10_000_000), (SECOND, 1_000_000)]}, "the rate changes over time"),
        ({"queue": {"qdisc": "bfifo", "limit_bytes": 150_000}}, "not limited in packets"),
    ],
)
def test_the_equation_refuses_what_it_does_not_cover(change: dict[str, Any], words: str) -> None:
    run = HandmadeRun(scenario({"ping": PING}, **change), {"probes": probes([10, 20])})
    with pytest.raises(figures.NoDataError, match=words):
        figures.draw(HandmadeResult([run]), "rtt_equation")


def test_a_picture_has_nothing_for_a_pointer() -> None:
    spec = spec_of(HandmadeResult([with_everything()]), "queue_length")
    still = pictures.still(spec)
    assert "params" in spec
    assert "params" not in still
    assert not [layer for layer in still["layer"] if layer.get("name") in ("hover", "crosshair")]
    assert not re.search(r'"param"|"expr"', json.dumps(still["layer"]))
    assert len(pictures.svg(spec)) < 100_000


def test_goodput_above_the_rate_is_explained() -> None:
    calm, burst = with_everything(), with_everything()
    for run in (calm, burst):
        run.rows["transfers"] = []
    # 1 MB acknowledged within one sample of 10 ms is 480 Mbit/s in a bin of 1/60 s, on a link of 10 Mbit/s.
    burst.rows["flows"] = [dict(r, delivered_bytes=0 if r["t_ns"] < SECOND else 10**6) for r in burst.rows["flows"]]
    assert "a retransmission released" in " ".join(spec_of(HandmadeResult([burst]), "goodput")["title"]["subtitle"])
    assert "a retransmission released" not in " ".join(spec_of(HandmadeResult([calm]), "goodput")["title"]["subtitle"])


def test_lines_of_a_subtitle_do_not_tear_names_apart() -> None:
    labels = [f"a-long-label-of-point-{n}" for n in range(9)]
    lines = spec_of(sweep(labels, lambda _: pinged([10, None])), "rtt")["title"]["subtitle"]
    assert len(lines) > 1
    assert all(label in " ".join(lines) for label in labels)


@pytest.mark.parametrize("name", [name for name in OF_POINTS if name != "download_time"])
def test_any_number_of_points_can_be_drawn(name: str) -> None:
    """Altair refuses tables of more than 5000 rows; sixty points of a thousand samples each have far more."""
    flow = {"flow": "bulk/1", "ssthresh_bytes": MSS}
    times = range(0, 10_000, 10)
    flows = [flow | {"t_ns": t * MS, "cwnd_bytes": t % 70 * MSS, "delivered_bytes": t * 1000,
                     "inflight_bytes": t % 65 * MSS, "srtt_ns": (20 + t % 70) * MS} for t in times]  # fmt: skip
    queues = [{"t_ns": t * MS, "packets": t % 50, "bytes": t % 50 * 1514} for t in times]
    rtts = probes([20 + n % 7 for n in range(500)], interval_ms=20)

    def run(label: str) -> HandmadeRun:
        network = scenario({"bulk": TCP, "ping": PING}, queue=pfifo(int(label)))
        answered = trips([20 + n % 70 for n in range(100)])
        return HandmadeRun(network, {"flows": flows, "queues": queues, "probes": rtts, "round_trips": answered})

    spec = spec_of(sweep([str(n) for n in range(1, 61)], run), name)
    assert max(len(rows) for rows in spec["datasets"].values()) <= 5000


def curve(window: str) -> HandmadeRun:
    """8 Mbit/s from 100 packets on, half with 50; 20 ms, and one more for each packet beyond 50."""
    packets = int(window.removesuffix("p"))
    flows: Rows = [
        {"flow": "bulk/1", "t_ns": t * SECOND, "delivered_bytes": t * 10_000 * min(100, packets)} for t in (0, 2)
    ]
    rtts: list[float | None] = [20.0 + packets - 50] * 3
    return HandmadeRun(scenario({"bulk": TCP, "ping": PING}, duration_s=2), {"flows": flows, "probes": probes(rtts)})


def test_goodput_against_delay_is_a_curve_through_the_points_in_the_order_of_the_sweep() -> None:
    spec = spec_of(sweep(["50p", "100p", "200p"], curve), "goodput_delay")
    (line,), (marks,) = (layers(spec, mark) for mark in ("line", "point"))
    rows = data_of(spec, line).select("point", "rtt_ms", "mbit").rows()
    assert rows == [("50p", 20, 4), ("100p", 70, 8), ("200p", 170, 8)]
    assert line["encoding"]["order"]["field"] == "index"
    words = [data_of(spec, names)["words"].to_list() for names in layers(spec, "text")]
    assert sorted(itertools.chain(*words)) == ["100p", "200p", "50p"]
    assert data_of(spec, marks)["point"].to_list() == ["50p", "100p", "200p"]


def test_goodput_against_delay_joins_no_disciplines() -> None:
    result = sweep(["50p", "100p"], curve)
    for run, name in zip(result.runs, ("taildrop", "dualpi2"), strict=True):
        run.point = dict.fromkeys(run.point, name)
    spec = spec_of(result, "goodput_delay")
    assert not layers(spec, "line")
    assert len(data_of(spec, layers(spec, "point")[0])) == 2


def test_goodput_against_delay_joins_no_points_of_two_engines_or_two_keys() -> None:
    both = sweep(["50p", "100p"], curve)
    both.runs[1].engine = "guest"
    two_keys = sweep(["50p", "100p"], curve)
    for run in two_keys.runs:
        run.point = {**run.point, "traffic.bulk.congestion": "reno"}
    for result in (both, two_keys):
        spec = spec_of(result, "goodput_delay")
        assert not layers(spec, "line")
        assert len(data_of(spec, layers(spec, "point")[0])) == 2


def test_a_point_whose_median_is_lost_has_no_mark_in_goodput_against_delay() -> None:
    result = sweep(["50p", "100p"], curve)
    result.runs[1].rows["probes"] = probes([20, None, None])
    spec = spec_of(result, "goodput_delay")
    assert data_of(spec, layers(spec, "point")[0])["point"].to_list() == ["50p"]
    for run in result.runs:
        run.rows["probes"] = probes([None, None])
    with pytest.raises(figures.NoDataError, match="no point has both"):
        figures.draw(result, "goodput_delay")
