"""The figure of a live measurement."""

import json
import re
from pathlib import Path
from typing import Any

import livestreams
import pytest
import vl_convert
from handmade import HandmadeResult, HandmadeRun, scenario

from bufferscope import figures
from bufferscope.engines.live import program
from bufferscope.engines.live.program import Request
from bufferscope.figures import pictures
from bufferscope.interop.live.measuring import measure
from bufferscope.results.result import Result
from bufferscope.store.run import Run

Spec = dict[str, Any]


def measured(place: Path, events: list[dict[str, Any]]) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(program.VARIABLE, str(livestreams.program(place / "program", events)))
        return measure(Request("example.org", "7Q2M"), place / "results").run


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    """The figure of a complete measurement."""
    run = measured(tmp_path_factory.mktemp("live"), livestreams.complete())
    return figures.draw(Result([run]), "live").to_dict()


def rows_of(spec: Spec, panel: Spec, mark: str) -> list[dict[str, Any]]:
    layer = next(layer for layer in panel["layer"] if layer["mark"]["type"] == mark)
    source = layer.get("data") or panel.get("data") or spec["data"]
    rows: list[dict[str, Any]] = spec["datasets"][source["name"]]
    return rows


def values(spec: Spec, panel: Spec, series: str) -> list[float]:
    return [row["value"] for row in rows_of(spec, panel, "line") if row["series"] == series]


def test_three_panels_have_one_time_axis(spec: Spec) -> None:
    titles = [panel["title"]["text"] for panel in spec["concat"]]
    assert titles == ["Round trip of the whole path", "Goodput at the receiver", "Round trip to each hop"]
    for panel in spec["concat"]:
        for layer in panel["layer"]:
            assert layer["encoding"]["x"]["scale"]["domain"] == [0, 24]
    assert spec["description"].endswith("2 lost.")


def test_the_queue_is_in_the_way_up_and_behind_the_first_hop(spec: Spec) -> None:
    trips, goodput, hops = spec["concat"]
    assert max(values(spec, trips, "round trip")) == pytest.approx(90.24)
    assert max(values(spec, trips, "change up")) == pytest.approx(80.2, abs=0.1)
    assert max(values(spec, trips, "change down")) < 0.1
    assert max(values(spec, hops, "hop 1")) == 2
    assert max(values(spec, hops, "hop 2")) == 86
    assert values(spec, goodput, "goodput up") == pytest.approx([10.0] * len(values(spec, goodput, "goodput up")))


def test_phases_under_load_are_shaded_and_all_are_named(spec: Spec) -> None:
    for panel in spec["concat"]:
        shaded = [(row["from_s"], row["to_s"]) for row in rows_of(spec, panel, "rect")]
        assert shaded == [(4, 10), (10, 16), (16, 22)]
        names = [row["name"] for row in rows_of(spec, panel, "text")]
        assert names == ["idle", "download", "upload", "both", "cool-down"]


def test_lost_echoes_are_marked(spec: Spec) -> None:
    lost = [livestreams.LOST_UP / 50, livestreams.LOST_DOWN / 50]
    assert [row["time_s"] for row in rows_of(spec, spec["concat"][0], "tick")] == lost


def test_it_can_be_drawn_on_any_background_and_its_legend_be_clicked(spec: Spec) -> None:
    assert pictures.svg(spec).startswith("<svg")
    plain = {key: value for key, value in spec.items() if key != "config"}
    assert not re.search(r'"#[0-9a-fA-F]{3,8}"', json.dumps(plain))
    vega = vl_convert.vegalite_to_vega(spec)
    legends = vega.get("legends", [])
    assert legends
    assert all(legend["encode"]["symbols"].get("interactive") for legend in legends)


def test_two_measurements_have_a_panel_each(tmp_path: Path) -> None:
    first = measured(tmp_path, livestreams.complete())
    later = livestreams.complete()
    later[0]["realtime_ns"] += 60 * livestreams.SECOND
    second = measured(tmp_path, later)
    found = figures.draw(Result([first, second]), "live").to_dict()
    assert len(found["concat"]) == 2


def test_other_runs_and_empty_measurements_have_no_such_figure(tmp_path: Path) -> None:
    with pytest.raises(figures.NoDataError, match="bufferscope measure"):
        figures.draw(HandmadeResult([HandmadeRun(scenario({}))]), "live")
    empty = measured(tmp_path, [livestreams.start(), livestreams.end([], complete=False, reason="no answer")])
    with pytest.raises(figures.NoDataError, match="nothing was observed"):
        figures.draw(Result([empty]), "live")
