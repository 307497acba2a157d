"""Figures with a cell for each combination of swept values."""

import json
import re
from typing import Any

import pytest
from handmade import PING, TCP, HandmadeResult, HandmadeRun, probes, scenario
from matrices import COLOURS, CONTROLS, QUEUES, competing, result_of, typical

from bufferscope import figures
from bufferscope.figures import pictures, style
from bufferscope.figures.declaring import declaration
from bufferscope.model.figure_names import FigureName

Spec = dict[str, Any]

NAMES = [name for name in figures.NAMES if declaration(name).shape == "matrix"]


def cells(result: HandmadeResult, name: FigureName) -> dict[tuple[str, str], float]:
    spec: Spec = figures.draw(result, name).to_dict()
    (data,) = spec["datasets"].values()
    return {(row["row"], row["column"]): row["value"] for row in data}


def test_the_median_round_trip_time_of_each_combination() -> None:
    found = cells(result_of(typical), "rtt_matrix")
    assert list(found)[:4] == [("reno", "0 · 20p"), ("reno", "0 · 1000p"), ("reno", "1 · 20p"), ("reno", "1 · 1000p")]
    assert [found["bbr", f"1 · {queue}"] for queue in QUEUES] == [42, 402]
    assert len(found) == 8


def test_the_goodput_of_all_traffic_together() -> None:
    found = cells(result_of(typical), "goodput_matrix")
    # 1,000,000 bytes in 1 s are 8 Mbit/s, with a rival; alone Reno has only 250,000 here.
    assert found["reno", "1 · 20p"] == pytest.approx(8, rel=1e-3)
    assert found["reno", "0 · 20p"] == pytest.approx(2, rel=1e-3)


def test_shares_and_fairness_are_shown_only_where_something_competes() -> None:
    shares, fairness = (cells(result_of(typical), name) for name in ("share_matrix", "jain_matrix"))
    assert set(shares) == set(fairness) == {(control, f"1 · {queue}") for control in CONTROLS for queue in QUEUES}
    assert (shares["reno", "1 · 20p"], shares["bbr", "1 · 20p"]) == pytest.approx((25, 75))
    # Shares of 1/4 and 3/4: 1 / (2 * (1/16 + 9/16)) = 0.8.
    assert fairness["reno", "1 · 20p"] == pytest.approx(0.8, rel=1e-4)


def test_a_cell_is_the_mean_of_the_repetitions() -> None:
    first, second = (result_of(lambda *_, rtt=rtt: competing(1, 1, [rtt])) for rtt in (40.0, 60.0))
    for run in second.runs:
        run.seed = 2
    assert set(cells(HandmadeResult(first.runs + second.runs), "rtt_matrix").values()) == {50}


def test_a_median_among_the_lost_ones_is_an_empty_cell() -> None:
    def lossy(control: str, *_: str) -> HandmadeRun:
        return competing(1, 1, [20, None, None] if control == "bbr" else [20, 30, 40])

    assert {row for row, _ in cells(result_of(lossy), "rtt_matrix")} == {"reno"}


def test_engines_have_columns_of_their_own() -> None:
    sim, guest = result_of(typical), result_of(typical)
    for run in guest.runs:
        run.engine = "guest"
    found = cells(HandmadeResult(sim.runs + guest.runs), "rtt_matrix")
    assert {column for _, column in found} >= {"1 · 20p · sim", "1 · 20p · guest"}


@pytest.mark.parametrize("name", NAMES)
def test_a_matrix_is_drawn_in_colours_of_the_theme_with_numbers_in_its_cells(name: FigureName) -> None:
    spec: Spec = figures.draw(result_of(typical), name).to_dict()
    assert [layer["mark"]["type"] for layer in spec["layer"]] == ["rect", "text"]
    assert spec["layer"][0]["encoding"]["color"]["scale"]["range"] == COLOURS[name]
    assert spec["title"]["text"]
    assert spec["description"].endswith(".")
    del spec["config"]
    assert not re.search(r'"#[0-9a-fA-F]{3,8}"', json.dumps(spec))


def test_a_picture_has_every_cell_and_every_line_of_a_column_s_label() -> None:
    picture = pictures.svg(figures.draw(result_of(typical), "rtt_matrix").to_dict())
    assert len(re.findall(r">(?:42|402)<", picture)) == 8
    assert len(re.findall(r">1000p<", picture)) == 2


def test_many_columns_ask_for_the_width_of_the_page() -> None:
    many, few = (figures.draw(result_of(typical), name).to_dict() for name in ("rtt_matrix", "share_matrix"))
    assert (many["usermeta"]["wide"], few["usermeta"]["wide"]) == (False, False)
    both = HandmadeResult(result_of(typical).runs)
    for run in both.runs[4:]:
        run.engine = "guest"
    assert figures.draw(both, "rtt_matrix").to_dict()["usermeta"]["wide"]


@pytest.mark.parametrize("name", NAMES)
def test_without_a_sweep_there_is_nothing_to_compare(name: FigureName) -> None:
    with pytest.raises(figures.NoDataError, match="nothing is swept"):
        figures.draw(HandmadeResult([competing(1, 1, [20])]), name)


def test_a_share_takes_two_traffics() -> None:
    run = HandmadeRun(scenario({"own": TCP, "ping": PING}), {"probes": probes([20])}, point={"duration": "10s"})
    with pytest.raises(figures.NoDataError, match="two traffic entries"):
        figures.draw(HandmadeResult([run]), "share_matrix")


@pytest.mark.parametrize("name", NAMES)
def test_the_caption_s_colours_are_those_of_the_cells_on_light_and_dark(name: FigureName) -> None:
    caption = " ".join(figures.draw(result_of(typical), name).to_dict()["title"]["subtitle"])
    words = {
        style.WORSE: "More orange: ",
        style.BETTER: "Bluer: ",
        "diverging": "Blue: takes more than half; orange: less.",
    }
    assert words[COLOURS[name]] in caption
    assert not re.search("dark|light", caption.lower())
