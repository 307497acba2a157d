"""A chart that cannot be drawn: the others are, and it keeps its description or its picture and says why."""

import re
from pathlib import Path

import altair as alt
import polars as pl
import pytest
from browsers import DRAWN_MS, draw_all
from playwright.sync_api import Browser
from reports import document, run, stored

from bufferscope import figures, report

pytestmark = pytest.mark.browser
SPEC = re.compile(r'(<script type="text/plain" class="spec">)[^<]*')


def written(directory: Path, *, stills: bool = False) -> Path:
    """A page with three charts: two over time, which move together, and one beside them."""
    made = run("50p", document=document(figures=["rtt", "queue_length", "rtt_cdf"]))
    return report.build([stored([made], directory / "results")], directory / "report", stills=stills)


@pytest.mark.parametrize(("broken", "stills"), [(0, False), (1, True), (2, False)])
def test_a_broken_chart_keeps_what_it_had_and_stops_no_other(
    chromium: Browser, tmp_path: Path, broken: int, stills: bool
) -> None:
    path = written(tmp_path, stills=stills)
    text = path.read_text(encoding="utf-8")
    place = list(SPEC.finditer(text))[broken]
    path.write_text(text[: place.end(1)] + "AAAA" + text[place.end() :], encoding="utf-8")
    page = chromium.new_page()
    page.goto(path.as_uri())
    for figure in page.locator("figure").all():
        figure.scroll_into_view_if_needed()
    page.wait_for_function(
        "document.querySelectorAll('figure[data-drawn], figure[data-failed]').length === 3", timeout=DRAWN_MS
    )
    failed = page.locator("figure[data-failed]")
    assert page.locator("figure[data-drawn] canvas:visible").count() == 2
    assert failed.count() == failed.locator("img.still:visible" if stills else "div.still:visible").count() == 1
    assert ("Not interactive: " if stills else "Not drawn: ") in failed.inner_text()
    page.close()


def test_numbers_that_json_does_not_have_stop_no_chart(
    chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def odd(_result: object, name: str) -> alt.LayerChart | alt.FacetChart:
        frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": [1.0, float("nan"), float("inf"), -float("inf")]})
        chart = alt.layer(alt.Chart(frame).mark_line().encode(x="x:Q", y="y:Q"))
        return chart.properties(title=alt.TitleParams(name), description="A line with gaps.", width=300)

    monkeypatch.setattr(figures, "draw", odd)
    page = chromium.new_page()
    page.goto(written(tmp_path).as_uri())
    draw_all(page)
    assert page.locator("figure[data-drawn]").count() == 3
    page.close()
