"""Every figure shows repetitions: each one if there are few, the spread of many, and how precise a mean is."""

from typing import Any

import pytest
from figure_specs import data_of, layers, pinged, spec_of, with_everything
from handmade import PING, SECOND, TCP, WEB, HandmadeResult, HandmadeRun, Rows, probes, scenario, sweep
from matrices import competing, result_of

from bufferscope import figures
from bufferscope.figures import NAMES, pictures
from bufferscope.figures.declaring import declaration

FEW, LOTS = 3, 11
OVER_TIME = ("queue_length", "rtt", "cwnd", "goodput")


def repeated(n: int) -> HandmadeResult:
    """Runs in which seed s has s ms more delay, s more packets queued, and s times the goodput."""
    runs = []
    for seed in range(1, n + 1):
        run = with_everything()
        run.seed = seed
        run.rows["transfers"] = []
        run.rows["queues"] = [row | {"packets": row["packets"] + seed} for row in run.rows["queues"]]
        run.rows["flows"] = [row | {"delivered_bytes": row["delivered_bytes"] * seed} for row in run.rows["flows"]]
        run.rows["probes"] = probes([20.0 + seed, 30.0 + seed, None, 50.0 + seed])
        runs.append(run)
    return HandmadeResult(runs)


def subtitle(spec: dict[str, Any]) -> str:
    return " ".join(spec["title"]["subtitle"])


@pytest.mark.parametrize("name", OVER_TIME)
def test_of_a_few_repetitions_the_first_is_strong_and_each_other_is_a_line(name: str) -> None:
    spec = spec_of(repeated(FEW), name)
    light, strong = [layer for layer in layers(spec, "line") if "opacity" in layer["encoding"]]
    assert set(data_of(spec, light)["repetition"]) == {1, 2}
    assert "repetition" in [detail["field"] for detail in light["encoding"]["detail"]]
    assert light["encoding"]["opacity"]["value"] < strong["encoding"]["opacity"]["value"]
    assert "Strong line: the first of 3 repetitions (seed 1); light: the others." in subtitle(spec)
    alone = spec_of(HandmadeResult(repeated(1).runs), name)
    assert data_of(spec, strong).equals(data_of(alone, layers(alone, "line")[-1]))


def test_of_many_repetitions_the_median_is_a_line_in_a_band() -> None:
    spec = spec_of(repeated(LOTS), "rtt")
    (band,) = layers(spec, "area")
    (line,) = layers(spec, "line")
    rows = data_of(spec, line).drop_nulls("rtt_ms")
    # The first probes took 21, 22, ... 31 ms: their median is 26, their 5th percentile 21.5.
    assert rows.select("rtt_ms", "p5", "p95").row(0) == (26, 21.5, 30.5)
    assert (band["encoding"]["y"]["field"], band["encoding"]["y2"]["field"]) == ("p5", "p95")
    assert data_of(spec, band).equals(data_of(spec, line))
    assert "Line: median of 11 repetitions; band: their 5th to 95th percentile." in subtitle(spec)


def test_a_step_of_time_in_which_all_probes_were_lost_is_a_gap() -> None:
    spec = spec_of(repeated(LOTS), "rtt")
    assert data_of(spec, layers(spec, "line")[0])["rtt_ms"].null_count() == 1


def test_lost_probes_of_all_repetitions_are_marked_and_counted() -> None:
    spec = spec_of(repeated(FEW), "rtt")
    assert "lost probes of all repetitions (3 of 12)" in subtitle(spec).replace("\N{NO-BREAK SPACE}", " ")
    assert data_of(spec, layers(spec, "tick")[0])["lost"].sum() == 3


@pytest.mark.parametrize("name", OVER_TIME)
def test_any_number_of_repetitions_is_drawn_within_the_limit_of_rows(name: str) -> None:
    for n in (FEW, LOTS):
        spec = spec_of(repeated(n), name)
        assert max(len(rows) for rows in spec["datasets"].values()) <= 5000
        assert pictures.svg(spec).startswith("<svg")


def test_the_pointer_tells_the_band_too() -> None:
    spec = spec_of(repeated(LOTS), "queue_length")
    (hover,) = [layer for layer in spec["layer"] if layer.get("name") == "hover"]
    assert '"p95"' in hover["encoding"]["tooltip"]["value"]["expr"]


def test_repetitions_are_pooled_in_the_distribution() -> None:
    result = HandmadeResult([pinged([10, 20], seed=2), pinged([30, None], seed=1)])
    spec = spec_of(result, "rtt_cdf")
    assert data_of(spec, spec["layer"][0])["percent"].max() == 75
    assert subtitle(spec).startswith("All 2 repetitions together.")
    assert "All 2 repetitions together." in subtitle(spec_of(result, "rtt_by_point"))


def test_a_mean_download_time_stands_in_its_confidence_interval() -> None:
    def run(seed: int, took: float) -> HandmadeRun:
        rows: Rows = [
            {"traffic": "web", "flow": "web/1", "started_ns": 0, "bytes": 1, "finished_ns": int(took * SECOND)}
        ]
        return HandmadeRun(scenario({"web": WEB}), {"transfers": rows}, seed=seed)

    spec = spec_of(HandmadeResult([run(1, 1), run(2, 2), run(3, 3)]), "download_time")
    (row,) = data_of(spec, layers(spec, "rect")[0]).rows(named=True)
    # Student's t for 95 % with 2 degrees of freedom: 4.3027; standard error 1 / sqrt(3).
    assert (row["seconds"], row["low"], row["high"]) == pytest.approx((2, 2 - 2.4841, 2 + 2.4841), abs=1e-3)
    assert data_of(spec, layers(spec, "point")[0])["seconds"].sort().to_list() == [1, 2, 3]
    assert "95 % confidence interval" in subtitle(spec)


def test_a_cell_tells_how_well_its_mean_is_known() -> None:
    runs = [run for seed, rtt in ((1, 40.0), (2, 60.0)) for run in _seeded(seed, rtt)]
    spec = figures.draw(HandmadeResult(runs), "rtt_matrix").to_dict()
    # Mean 50, standard error 10, Student's t with one degree of freedom 12.706.
    row = data_of(spec, spec["layer"][0]).row(0, named=True)
    assert (row["low"], row["high"]) == pytest.approx((50 - 127.06, 50 + 127.06), abs=0.01)
    picture = pictures.svg(spec)
    assert "± 130" in picture  # two digits of 127.06
    assert "± half the width of the 95 % confidence interval" in subtitle(spec)


def _seeded(seed: int, rtt: float) -> list[HandmadeRun]:
    runs = result_of(lambda *_: competing(1, 1, [rtt])).runs
    for run in runs:
        run.seed = seed
    return runs


def test_marks_of_goodput_against_delay_have_an_interval_each_way() -> None:
    def run(seed: int) -> HandmadeRun:
        flows: Rows = [{"flow": "bulk/1", "t_ns": t * SECOND, "delivered_bytes": t * 10**6 * seed} for t in (0, 1)]
        own = HandmadeRun(scenario({"bulk": TCP, "ping": PING}, duration_s=1), {"flows": flows}, seed=seed)
        own.rows["probes"] = probes([100.0 + seed] * 3)
        return own

    sweeps = [sweep(["50p", "100p"], lambda _, seed=seed: run(seed)) for seed in (1, 2)]  # type: ignore[misc]
    runs = [own for one in sweeps for own in one.runs]
    spec = spec_of(HandmadeResult(runs), "goodput_delay")
    across, upright = [rule for rule in layers(spec, "rule") if rule["mark"].get("style") != "leader"]
    assert (across["encoding"]["x"]["field"], upright["encoding"]["y"]["field"]) == ("rtt_ms_low", "mbit_low")
    row = data_of(spec, across).row(0, named=True)
    assert (row["rtt_ms"], row["rtt_ms_high"]) == pytest.approx((101.5, 101.5 + 12.706 * 0.5), abs=1e-2)
    assert "95 % confidence intervals" in subtitle(spec)


@pytest.mark.parametrize("name", [name for name in NAMES if declaration(name).only_of in ("", "a population")])
def test_a_single_repetition_says_nothing_of_repetitions(name: str) -> None:
    spec = spec_of(sweep(["50p", "100p"], with_everything), name)
    assert not any(word in str(spec["title"]) for word in ("repetition", "interval", "band"))
