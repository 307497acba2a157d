"""Goodput against latency: marks, the scatter of repetitions, panels, families and names."""

import itertools
import json
import math
import re
from typing import Any

import numpy as np
import pytest
from handmade import PING, SECOND, TCP, UDP, HandmadeResult, HandmadeRun, probes, scenario

from bufferscope import _core, figures
from bufferscope.figures import families, pictures
from bufferscope.figures.charts.trade_offs import RADIUS, Spot, ellipse
from bufferscope.stats.estimate import estimate

Spec = dict[str, Any]
LOADS, QUEUES = ["1 flow", "8 flows"], ["pfifo 1000", "codel"]
KEYS = ("traffic", "link.bottleneck.forward.queue")


def run_of(mbit: float, rtt_ms: float | None, seed: int = 1, point: dict[str, str] | None = None) -> HandmadeRun:
    """A run of 1 s with this goodput and these round-trip times."""
    flows = [{"flow": "bulk/1", "t_ns": t, "delivered_bytes": round(mbit * 125_000) * t // SECOND} for t in (0, SECOND)]
    rows = {"flows": flows, "probes": probes([rtt_ms] * 5)}
    return HandmadeRun(scenario({"bulk": TCP, "ping": PING}, duration_s=1), rows, seed=seed, point=point or {})


def result_of(repetitions: int = 3, loads: list[str] = LOADS, queues: list[str] = QUEUES) -> HandmadeResult:
    """CoDel has a tenth of the delay; each repetition differs a little."""
    runs = []
    for load, queue in itertools.product(loads, queues):
        for seed in range(1, repetitions + 1):
            rtt = (500.0 if queue.startswith("pfifo") else 50.0) * (1 + seed / 50)
            run = run_of(9 - seed / 10, rtt, seed)
            run.point = dict(zip(KEYS, (load, queue), strict=True))
            run.id = f"{load}-{queue}-{seed}"
            runs.append(run)
    return HandmadeResult(runs)


def spec_of(result: HandmadeResult) -> Spec:
    spec: Spec = figures.draw(result, "trade_offs").to_dict()
    return spec


def rows_of(spec: Spec, panel: Spec, mark: str) -> list[dict[str, Any]]:
    """The data of the first layer of a mark that has series."""
    layer = next(each for each in panel["layer"] if each["mark"]["type"] == mark and "color" in each["encoding"])
    source = layer.get("data") or panel.get("data") or spec["data"]
    rows: list[dict[str, Any]] = spec["datasets"][source["name"]]
    return rows


def test_queues_are_marks_and_the_other_keys_are_panels() -> None:
    spec = spec_of(result_of())
    assert [panel["title"]["text"] for panel in spec["concat"]] == LOADS
    for panel in spec["concat"]:
        rows = {row["series"]: row for row in rows_of(spec, panel, "point")}
        assert list(rows) == QUEUES
        assert rows["codel"]["rtt_ms"] == pytest.approx(50 * 1.04)
        assert rows["codel"]["mbit"] == pytest.approx(8.8, rel=1e-4)
        assert rows["codel"]["mbit_low"] < 8.8 < rows["codel"]["mbit_high"]


def test_without_a_queue_the_first_key_is_the_marks() -> None:
    runs = [
        run_of(9, 20 * n, point={"traffic.bulk.congestion": name}) for n, name in enumerate(("reno", "bbr"), start=1)
    ]
    spec = spec_of(HandmadeResult(runs))
    (panel,) = spec["concat"]
    assert "title" not in panel
    assert [row["series"] for row in rows_of(spec, panel, "point")] == ["reno", "bbr"]


def test_all_panels_have_the_same_axis_of_times() -> None:
    spec = spec_of(result_of())
    domains = [
        layer["encoding"]["x"]["scale"]["domain"]
        for panel in spec["concat"]
        for layer in panel["layer"]
        if "scale" in layer["encoding"]["x"]
    ]
    assert len({tuple(domain) for domain in domains}) == 1
    assert domains[0][0] < 50 < 510 < domains[0][1]


def words_of(spec: Spec, panel: Spec) -> list[tuple[str, str]]:
    """The lines of all labels of a panel, each with its colour's name."""
    layers = [each for each in panel["layer"] if each["mark"]["type"] == "text" and "color" in each["encoding"]]
    return [(row["words"], row["kind"]) for each in layers for row in spec["datasets"][each["data"]["name"]]]


def test_marks_that_coincide_share_a_label_that_has_every_name_once() -> None:
    queues = [f"queue {number}" for number in range(20)]
    spec = spec_of(result_of(queues=queues))
    for panel in spec["concat"]:
        words = [words for words, _ in words_of(spec, panel)]
        assert ", ".join(words).split(", ") == queues
        assert max(len(line.split(", ")) for line in words) > 1


def with_queue(run: HandmadeRun, **queue: Any) -> HandmadeRun:
    run.scenario["links"][1]["forward"]["queue"] = queue
    return run


def of_queues(*queues: dict[str, Any]) -> HandmadeResult:
    """A run for each queue, all with nearly the same numbers."""
    runs = []
    for number, queue in enumerate(queues):
        run = run_of(9, 50 + number / 10, point={"link.bottleneck.forward.queue": f"{queue['qdisc']} {number}"})
        run.id = f"run-{number}"
        runs.append(with_queue(run, **queue))
    return HandmadeResult(runs)


def test_disciplines_have_the_colours_of_their_families_with_a_legend() -> None:
    spec = spec_of(of_queues(*({"qdisc": kind} for kind in ("fq_codel", "pfifo", "codel", "cake", "dualpi2"))))
    (panel,) = spec["concat"]
    assert words_of(spec, panel) == [
        ("pfifo 1", families.WHEN_FULL),
        ("codel 2", families.AQM),
        ("fq_codel 0, cake 3", families.EACH_FLOW),
        ("dualpi2 4", families.COUPLED),
    ]
    marks = next(each for each in panel["layer"] if "shape" in each["encoding"])["encoding"]
    assert marks["color"]["scale"]["domain"] == marks["shape"]["scale"]["domain"] == list(families.FAMILIES[:4])
    assert marks["color"]["legend"] == marks["shape"]["legend"]


def test_ellipses_share_the_legend_of_the_marks() -> None:
    """A browser warns of a legend that one of its channels turns off."""
    result = result_of()
    for run in result.runs:
        with_queue(run, qdisc=run.point[KEYS[1]].split()[0])
    layers = [layer["encoding"] for panel in spec_of(result)["concat"] for layer in panel["layer"]]
    fills = [own for own in layers if "fill" in own]
    assert fills
    assert any(own["fill"]["legend"] for own in fills)
    assert all(own["fill"]["legend"] == own["color"]["legend"] for own in fills)


def test_families_have_a_shape_each() -> None:
    spec = spec_of(of_queues(*({"qdisc": kind} for kind in ("fq_codel", "pfifo", "codel", "cake", "dualpi2"))))
    marks = next(each for each in spec["concat"][0]["layer"] if "shape" in each["encoding"])["encoding"]
    assert len(set(marks["shape"]["scale"]["range"])) == 4


def test_every_discipline_has_a_family_and_those_that_hold_others_have_theirs() -> None:
    assert all(families.family({"qdisc": kind}) != families.OTHERS for kind in _core.QDISCS)
    assert families.family({"qdisc": "prio", "inner": [{"qdisc": "fq_codel"}]}) == families.EACH_FLOW
    mixed = {"qdisc": "prio", "inner": [{"qdisc": "fq_codel"}, {"qdisc": "pie"}]}
    assert families.family(mixed) == families.OTHERS


def test_marks_that_are_no_disciplines_have_a_colour_each_and_no_legend() -> None:
    spec = spec_of(result_of())
    for panel in spec["concat"]:
        assert words_of(spec, panel) == [(queue, queue) for queue in reversed(QUEUES)]
        colours = [each["encoding"]["color"] for each in panel["layer"] if "color" in each["encoding"]]
        assert all(colour["legend"] is None and colour["scale"]["domain"] == QUEUES for colour in colours)


def test_beside_datagrams_the_goodput_is_that_of_tcp() -> None:
    result = result_of(1)
    flooded = result.runs[0]
    flooded.scenario = scenario({"bulk": TCP, "flood": UDP, "ping": PING}, duration_s=1)
    datagrams = [{"flow": "flood/1", "t_ns": t, "delivered_bytes": 500_000 * t // SECOND} for t in (0, SECOND)]
    flooded.rows = flooded.rows | {"flows": [*flooded.rows["flows"], *datagrams]}
    spec = spec_of(result)
    titles = []
    for panel in spec["concat"]:
        assert [row["mbit"] for row in rows_of(spec, panel, "point")] == pytest.approx([8.9, 8.9])
        titles.append({each["encoding"]["y"].get("title") for each in panel["layer"]} - {None})
    assert titles == [{"TCP goodput (Mbit/s)"}, {"goodput (Mbit/s)"}]
    assert "TCP goodput: what datagrams" in " ".join(spec["title"]["subtitle"])


def test_an_ellipse_is_the_region_of_95_percent_of_a_normal_scatter() -> None:
    random = np.random.default_rng(1)
    times, rates = np.exp(random.normal(4, 0.2, 4000)), random.normal(9, 0.3, 4000)
    vertices = ellipse(Spot("", "codel", estimate(times.tolist()), estimate(rates.tolist())))
    x = [math.log(float(str(vertex["rtt_ms"]))) for vertex in vertices]
    y = [float(str(vertex["mbit"])) for vertex in vertices]
    assert max(x) - min(x) == pytest.approx(2 * RADIUS * 0.2, rel=0.05)
    assert max(y) - min(y) == pytest.approx(2 * RADIUS * 0.3, rel=0.05)
    inside = ((np.log(times) - np.mean(x)) / (RADIUS * 0.2)) ** 2 + ((rates - 9) / (RADIUS * 0.3)) ** 2 <= 1
    assert inside.mean() == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize(("repetitions", "drawn"), [(1, False), (2, False), (3, True)])
def test_ellipses_need_repetitions(repetitions: int, drawn: bool) -> None:
    spec = spec_of(result_of(repetitions))
    marks = [layer["mark"]["type"] for panel in spec["concat"] for layer in panel["layer"]]
    assert ("line" in marks) is drawn
    assert ("ellipses: 95 %" in " ".join(spec["title"]["subtitle"])) is drawn


def test_points_whose_probes_are_mostly_lost_are_named_and_not_drawn() -> None:
    result = result_of(1)
    result.runs[0].rows["probes"] = probes([None, None, None, 20, 30])
    spec = spec_of(result)
    assert [row["series"] for row in rows_of(spec, spec["concat"][0], "point")] == ["codel"]
    assert "No mark, because most pings were lost: 1 flow: pfifo 1000." in " ".join(spec["title"]["subtitle"])


def test_too_many_panels_are_refused() -> None:
    with pytest.raises(figures.NoDataError, match="2 marks in 10 panels"):
        spec_of(result_of(1, [f"load {number}" for number in range(10)]))


def test_the_figure_draws_in_any_colours_and_says_what_it_shows() -> None:
    spec = spec_of(result_of())
    assert pictures.svg(spec).startswith("<svg")
    assert "1 flow, codel: 8.8 Mbit/s at 52 ms" in spec["description"]
    del spec["config"]
    assert not re.search(r'"#[0-9a-fA-F]{3,8}"', json.dumps(spec))
    assert spec["usermeta"]["panels"]["columns"] == 2
