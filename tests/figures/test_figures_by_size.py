"""Figures of a metric against a swept size, the receivers' windows, and distributions in panels."""

import itertools
from typing import Any

import polars as pl
import pytest
from figure_specs import data_of, layers, spec_of
from handmade import MS, PING, SECOND, TCP, HandmadeResult, HandmadeRun, Rows, probes, scenario, sweep

from bufferscope import figures
from bufferscope.figures import pictures
from bufferscope.figures.declaring import declaration

RING, DISCIPLINE = "link.bottleneck.ring.size", "link.bottleneck.queue.qdisc"
BY_SIZE = [name for name in figures.NAMES if declaration(name).shape == "by size"]


def measured(size: int, seed: int = 1, factor: int = 1) -> HandmadeRun:
    """A run of a second with `factor * size` ms of delay, drops and retransmissions, and one more for each seed."""
    number = factor * size + seed - 1
    drops: Rows = [{"t_ns": MS, "reason": "overlimit"}] * number
    flows: Rows = [{"t_ns": t, "flow": "bulk/1", "retransmits": number * t // SECOND} for t in (0, SECOND)]
    queues: Rows = [{"t_ns": 0, "packets": 1, "bytes": 1514}]
    run = HandmadeRun(
        scenario({"bulk": TCP, "ping": PING}, duration_s=1),
        {"probes": probes([float(number)]), "drops": drops, "flows": flows, "queues": queues},
        seed=seed,
    )
    run.point = {RING: f"{size}p"}
    return run


def drawn(result: HandmadeResult, name: str) -> tuple[dict[str, Any], pl.DataFrame]:
    spec = spec_of(result, name)
    return spec, data_of(spec, spec["layer"][0])


@pytest.mark.parametrize("name", BY_SIZE)
def test_a_mark_for_each_size_with_the_standard_error_of_its_mean(name: str) -> None:
    result = HandmadeResult([measured(size, seed) for size in (256, 80) for seed in (1, 2, 3)])
    spec, rows = drawn(result, name)
    assert rows.select("size", "value").rows() == [(256, 257), (80, 81)]
    # Values that are 0, 1 and 2 above the size have a standard deviation of 1: the error of their mean is 1 / sqrt(3).
    assert rows["sem"].to_list() == pytest.approx([0.57735] * 2)
    assert (rows["high"] - rows["low"]).to_list() == pytest.approx([2 * 0.57735] * 2, rel=1e-3)
    x = layers(spec, "point")[0]["encoding"]["x"]
    assert (x["title"], x["axis"]["values"]) == ("ring size (packets)", [80, 256])
    assert "standard error of the mean over 3 repetitions" in spec["title"]["subtitle"][0]
    assert spec["description"].endswith(".")
    assert pictures.svg(spec).startswith("<svg")


@pytest.mark.parametrize("name", BY_SIZE)
def test_other_swept_keys_make_lines_of_their_own(name: str) -> None:
    runs = []
    for (factor, discipline), size in itertools.product(enumerate(("pfifo", "codel"), start=1), (80, 256)):
        run = measured(size, factor=factor)
        run.point = {DISCIPLINE: discipline, RING: f"{size}p"}
        runs.append(run)
    spec, rows = drawn(HandmadeResult(runs), name)
    assert rows.select("series", "size", "value").rows() == [
        ("pfifo", 80, 80), ("pfifo", 256, 256), ("codel", 80, 160), ("codel", 256, 512)
    ]  # fmt: skip
    assert layers(spec, "line")[0]["encoding"]["color"]["scale"]["domain"] == ["pfifo", "codel"]
    assert "subtitle" not in spec["title"]  # one repetition has no error


def test_words_after_a_size_make_lines_of_their_own() -> None:
    runs = []
    for (factor, place), size in itertools.product(enumerate(("on the card", "on a VLAN"), start=1), (80, 256)):
        run = measured(size, factor=factor)
        run.point = {"link.bottleneck.forward": f"{size}p {place}"}
        runs.append(run)
    _, rows = drawn(HandmadeResult(runs), "rtt_by_size")
    assert rows.select("series", "size", "value").rows() == [
        ("on the card", 80, 80), ("on the card", 256, 256), ("on a VLAN", 80, 160), ("on a VLAN", 256, 512)
    ]  # fmt: skip


def test_sizes_of_a_wide_range_get_a_logarithmic_axis() -> None:
    wide, narrow = (drawn(HandmadeResult([measured(80), measured(top)]), "rtt_by_size")[0] for top in (4096, 2048))
    assert layers(wide, "point")[0]["encoding"]["x"]["scale"]["type"] == "log"
    assert layers(narrow, "point")[0]["encoding"]["x"]["scale"]["domain"][0] == 0


def test_values_that_are_no_sizes_of_one_unit_have_no_such_figure() -> None:
    for values in (("80p", "80kb"), ("pfifo", "codel"), ("80p", "80p")):
        result = HandmadeResult([measured(80), measured(81)])
        for run, value in zip(result.runs, values, strict=True):
            run.point = {RING: value}
            run.engine = "sim" if run is result.runs[0] else "guest"
        with pytest.raises(figures.NoDataError, match="no swept key has several sizes"):
            figures.draw(result, "rtt_by_size")


def test_the_window_that_a_receiver_had_advertised_at_each_byte() -> None:
    rows: Rows = [
        {"t_ns": n * SECOND, "flow": f"bulk/{flow}", "delivered_bytes": n * 10**6, "rwnd_bytes": n * flow * 10**5}
        for flow in (1, 2)
        for n in range(3)
    ]
    result = sweep(["50p"], lambda _: HandmadeRun(scenario({"bulk": TCP}), {"flows": rows}))
    spec = spec_of(result, "receive_window")
    line = layers(spec, "line")[0]
    assert data_of(spec, line).select("flow", "acknowledged_mb", "window_mb").rows() == [
        ("bulk/1", 0, 0), ("bulk/1", 1, 0.1), ("bulk/1", 2, 0.2),
        ("bulk/2", 0, 0), ("bulk/2", 1, 0.2), ("bulk/2", 2, 0.4),
    ]  # fmt: skip
    assert "at most 0.4 MB" in spec["description"]


def test_windows_of_many_connections_are_thinned_without_losing_the_largest() -> None:
    rows: Rows = [
        {"t_ns": n * MS, "flow": f"bulk/{flow}", "delivered_bytes": n * 10**6, "rwnd_bytes": 10**6 + (n == 777) * 10**6}
        for flow in range(30)
        for n in range(1000)
    ]
    spec = spec_of(HandmadeResult([HandmadeRun(scenario({"bulk": TCP}), {"flows": rows})]), "receive_window")
    shown = data_of(spec, layers(spec, "line")[0])
    assert shown.height <= 5000
    assert shown.filter(pl.col("window_mb") == 2).height == 30


def test_without_tcp_no_window_is_advertised() -> None:
    with pytest.raises(figures.NoDataError, match="no samples of a TCP connection"):
        figures.draw(HandmadeResult([HandmadeRun(scenario({"ping": PING}))]), "receive_window")


def in_panels(bql: tuple[str, ...] = ("off", "on"), last: float | None = 40) -> HandmadeResult:
    runs = []
    for size, own in itertools.product(("80p", "4096p"), bql):
        run = HandmadeRun(scenario({"ping": PING}), {"probes": probes([10.0, 20.0, 30.0, last])})
        run.point = {RING: size, "link.bottleneck.ring.bql": own}
        runs.append(run)
    return HandmadeResult(runs)


def test_each_combination_of_the_other_keys_is_a_panel_with_a_curve_for_each_value_of_the_first() -> None:
    spec: dict[str, Any] = figures.draw(in_panels(), "rtt_cdf_panels").to_dict()
    assert [panel["title"]["text"] for panel in spec["concat"]] == ["off", "on"]
    for panel in spec["concat"]:
        line, _ = panel["layer"]
        rows = pl.DataFrame(spec["datasets"][(line.get("data") or panel["data"])["name"]])
        assert rows.filter(series="80p").select("rtt_ms", "percent").rows() == [
            (10, 25), (20, 50), (30, 75), (40, 100)
        ]  # fmt: skip
        assert line["encoding"]["color"]["scale"]["domain"] == ["80p", "4096p"]
    assert pictures.svg(spec).startswith("<svg")
    assert [len(panel["layer"]) for panel in pictures.still(spec)["concat"]] == [1, 1]  # without the pointer's marks


def test_panels_tell_of_lost_probes_and_of_repetitions() -> None:
    lossy = in_panels(last=None)
    again = in_panels(last=None)
    for run in again.runs:
        run.seed = 2
    spec = figures.draw(HandmadeResult(lossy.runs + again.runs), "rtt_cdf_panels").to_dict()
    told = " ".join(spec["title"]["subtitle"])
    assert "All 2 repetitions together." in told
    assert "ends below 100 %" in told


def test_a_single_varying_key_makes_a_single_panel() -> None:
    spec: dict[str, Any] = figures.draw(in_panels(bql=("on",)), "rtt_cdf_panels").to_dict()
    (panel,) = spec["concat"]
    assert "title" not in panel
    assert panel["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["80p", "4096p"]
    assert "4096p: half within 20 ms" in spec["description"]


def test_too_many_panels_are_refused() -> None:
    with pytest.raises(figures.NoDataError, match="10 panels are too many"):
        figures.draw(in_panels(bql=tuple("abcdefghij")), "rtt_cdf_panels")
