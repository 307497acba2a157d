"""The page of a live measurement in a real browser: the sentences, the figure, and the tables."""

from collections.abc import Iterator
from pathlib import Path

import livestreams
import pytest
from browsers import draw_all
from playwright.sync_api import Browser, Page

from bufferscope import report
from bufferscope.engines.live import program
from bufferscope.engines.live.program import Request
from bufferscope.interop.live.measuring import measure
from bufferscope.report.live import opening
from bufferscope.results.result import Result

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a measurement in which a hop has a name that looks like markup."""
    place = tmp_path_factory.mktemp("live")
    events = livestreams.complete()
    events[-1]["verdict"]["evidence"].append({"text": "<script>window.broken = true</script>", "value": "<b>1</b>"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(program.VARIABLE, str(livestreams.program(place / "program", events)))
        run = measure(Request("example.org", "7Q2M"), place / "results").run
    return report.build([Result([run])], place / "report", opening=opening(run))


@pytest.fixture
def page(chromium: Browser, written: Path) -> Iterator[Page]:
    errors: list[str] = []
    opened = chromium.new_page()
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.goto(written.as_uri())
    yield opened
    assert errors == []
    opened.close()


def test_the_page_begins_with_the_sentences_and_the_numbers_of_each_phase(page: Page) -> None:
    sentences = livestreams.verdict()["sentences"]
    answer = page.locator("#answer")
    assert answer.locator("h2").inner_text() == sentences[0]
    assert answer.locator("p").all_inner_texts()[:4] == sentences[1:]
    rows = [row.inner_text().split("\t") for row in answer.locator("tbody tr").all()]
    assert [row[:2] for row in rows] == [
        *(["idle", "-"], ["download", "no queue"], ["upload", "a queue grows"], ["both directions", "a queue grows"]),
    ]
    assert rows[2][6:8] == ["80.2", "C"]


def test_the_tables_are_visible_and_the_figure_is_drawn(page: Page) -> None:
    draw_all(page)
    assert page.locator("figure[data-drawn]").count() == 2
    shown = page.locator("table.judged:visible caption").all_inner_texts()
    assert shown == [
        "Where the delay is",
        "Each direction under load",
        "Grades by the 95th percentile of the added delay",
    ]
    assert "the router's uplink, or a modem behind it (192.168.1.1)" in page.locator("table.judged").first.inner_text()
    page.locator("summary", has_text="Hops, upload").click()
    assert page.locator("table.judged:visible", has_text="203.0.113.1").count() >= 1
    assert page.get_by_text("This machine does not report: the size of the ring.").first.is_visible()
    assert page.get_by_text("Network and traffic").count() == 0


def test_text_of_others_is_text(page: Page) -> None:
    page.locator("summary", has_text="Evidence").click()
    assert page.get_by_text("<script>window.broken = true</script>").is_visible()
    assert page.evaluate("window.broken") is None


def test_it_fits_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    draw_all(page)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
