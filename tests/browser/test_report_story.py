"""A report of several experiments in a browser: its contents, folds, filters, files and sheets of paper."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsers import DRAWN_MS
from handmade import probes
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize
from pypdf import PdfReader
from reports import EXPECTATIONS, FIFTY, LABELS, document, expectation, run, stored

from bufferscope import report

pytestmark = pytest.mark.browser

DESKTOP = ViewportSize(width=1400, height=900)
PHONE = ViewportSize(width=400, height=840)
METRICS = "#two-queues-metrics"
A4_POINTS = (595, 842)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of two experiments; one has an odd label and a delay of more than a thousand milliseconds."""
    directory = tmp_path_factory.mktemp("story")
    wide = expectation("cwnd.bulk.max_packets", "about 6,000 segments", [4500, 7500], [(FIFTY, None)])
    slow = run(
        "50p", experiment="slow", document=document(title="Slow", figures=["rtt"]), expectations=[*EXPECTATIONS, wide]
    )
    slow.rows["probes"] = probes([1500.5])
    runs = [run(label) for label in LABELS]
    runs[1].point = {next(iter(runs[1].point)): '100p, "large"'}
    runs[1].document = runs[0].document = document(figures=["rtt", "queue_length"])
    results = [stored(runs, directory / "results"), stored([slow], directory / "results")]
    return report.build(results, directory / "report")


@pytest.fixture(scope="module")
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """A browser without network."""
    made = chromium.new_context(offline=True, accept_downloads=True, reduced_motion="reduce")
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext, written: Path) -> Iterator[Page]:
    """The page on a large screen."""
    opened = context.new_page()
    opened.set_viewport_size(DESKTOP)
    opened.goto(written.as_uri())
    yield opened
    opened.close()


def current(page: Page) -> list[str]:
    return page.locator("#contents a[aria-current]").all_inner_texts()


def test_the_contents_stay_beside_the_page_and_mark_the_section_in_view(page: Page) -> None:
    assert page.locator("#contents button:visible").count() == 0
    for anchor, title in (("slow", "Slow"), ("two-queues", "Two queues"), ("meanings", "What the metrics mean")):
        page.locator("#contents a", has_text=title).click()
        page.wait_for_function("(id) => location.hash === `#${id}`", arg=anchor)
        page.wait_for_function("() => document.querySelector('#contents a[aria-current]')")
        box = page.locator("#contents").bounding_box()
        assert box is not None
        assert box["x"] + box["width"] < 320
        assert 0 <= box["y"] < 100
        if anchor != "meanings":  # the page ends before its last section can reach the top
            page.wait_for_function(
                "(title) => document.querySelector('#contents a[aria-current]').innerText === title", arg=title
            )
            assert current(page) == [title]


def test_on_a_phone_the_contents_are_a_menu_for_keyboards_too(page: Page) -> None:
    page.set_viewport_size(PHONE)
    button = page.locator("#contents button")
    assert page.locator("#contents-list:visible").count() == 0
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    assert page.locator("#contents-list:visible").count() == 1
    page.keyboard.press("Escape")
    assert page.locator("#contents-list:visible").count() == 0
    page.keyboard.press("Enter")
    page.locator("#contents a", has_text="Slow").press("Enter")
    page.wait_for_function("location.hash === '#slow'")
    assert page.locator("#contents-list:visible").count() == 0
    menu, section = page.locator("#contents").bounding_box(), page.locator("#slow-title").bounding_box()
    assert menu is not None
    assert section is not None
    assert menu["y"] == 0
    assert section["y"] >= menu["height"]  # not hidden behind the menu


@pytest.mark.parametrize("width", [1000, 1200, 1920])
def test_no_cell_of_the_verdicts_runs_into_the_next(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    for fold in page.query_selector_all(".groups details:not([open]) > summary"):
        fold.click()
    too_wide = "cells => cells.filter(cell => cell.scrollWidth > cell.clientWidth + 1).map(cell => cell.textContent)"
    assert page.locator(".groups td").count() > 10
    assert page.locator(".groups :is(th, td)").evaluate_all(too_wide) == []


def test_without_scripts_the_contents_and_all_metrics_can_be_read(chromium: Browser, written: Path) -> None:
    plain = chromium.new_context(java_script_enabled=False, offline=True, viewport=PHONE)
    page = plain.new_page()
    page.goto(written.as_uri())
    assert page.locator("#contents-list:visible").count() == 1
    assert page.locator(".tools:visible").count() == 0
    page.locator(f"{METRICS} summary").click()
    assert page.locator(f"{METRICS} tbody tr:visible").count() == page.locator(f"{METRICS} tbody tr").count()
    plain.close()


def test_a_reason_is_beside_its_statements_and_leads_to_them(page: Page) -> None:
    fold = page.locator("#two-queues-expectations")
    link = fold.locator(".subjects a", has_text="rtt.max_ms").first
    assert not link.is_visible()
    page.locator(".outcome a").first.click()  # "here is why"
    fold.locator("> summary").click()
    link.click()
    row = page.locator(f"#verdicts {link.get_attribute('href')}")
    assert "never above 50 ms" in row.inner_text()
    assert row.evaluate("(element) => element.matches(':target')")
    apart = fold.locator(".apart")
    assert not apart.locator("table").is_visible()
    apart.locator("summary").click()
    assert "with 200 packets 80 ms" in apart.locator("table").inner_text()


def shown_metrics(page: Page) -> list[str]:
    shown = page.locator(f"{METRICS} th[data-metric]:visible").all()
    return [cell.get_attribute("data-metric") or "" for cell in shown]


def opened_metrics(page: Page) -> None:
    page.locator(f"{METRICS} summary").click()
    page.locator(f"{METRICS} input[name=metrics]").wait_for(state="visible")


def test_metrics_are_filtered_by_name_and_meaning_and_points_by_label(page: Page) -> None:
    opened_metrics(page)
    everything = shown_metrics(page)
    page.locator(f"{METRICS} input[name=metrics]").fill("RTT max")
    assert shown_metrics(page) == ["rtt.max_ms"]
    page.locator(f"{METRICS} input[name=metrics]").fill("fairness")  # in the meaning alone
    assert shown_metrics(page) == ["goodput.jain"]
    assert page.locator(f"{METRICS} th[scope=colgroup]:visible").all_inner_texts() == ["goodput"]
    page.locator(f"{METRICS} input[name=points]").fill("large")
    assert page.locator(f"{METRICS} tbody tr:visible").count() == 1
    assert page.locator(f"{METRICS} output").inner_text() == f"1 of {len(everything)} metrics, 1 of 2 points"
    for name in ("metrics", "points"):
        page.locator(f"{METRICS} input[name={name}]").fill("")
    assert shown_metrics(page) == everything
    assert page.locator(f"{METRICS} tbody tr:visible").count() == page.locator(f"{METRICS} tbody tr").count()


def saved(page: Page, fold: str) -> list[list[str]]:
    """The file that the button of a table of metrics saves."""
    with page.expect_download() as download:
        page.locator(f"{fold} button", has_text="CSV").click()
    assert download.value.suggested_filename == f"{fold.strip('#')}.csv"
    with download.value.path().open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_the_file_holds_what_is_shown_and_quotes_it(page: Page) -> None:
    opened_metrics(page)
    whole = saved(page, METRICS)
    assert whole[0] == ["point", *shown_metrics(page)]
    assert [row[0] for row in whole[1:]] == ["50p", '100p, "large"']
    page.locator(f"{METRICS} input[name=metrics]").fill("rtt.mean")
    page.locator(f"{METRICS} input[name=points]").fill("large")
    assert saved(page, METRICS) == [["point", "rtt.mean_ms"], ['100p, "large"', "40"]]


def test_numbers_leave_the_page_without_blanks_between_their_thousands(page: Page) -> None:
    page.locator("#slow-metrics summary").click()
    page.locator("#slow-metrics input").fill("rtt.max")
    assert saved(page, "#slow-metrics")[1] == ["50p", "1500"]
    copied = page.evaluate(
        """() => {
            getSelection().selectAllChildren(document.querySelector("#slow-metrics tbody"));
            const event = new ClipboardEvent("copy", { clipboardData: new DataTransfer(), cancelable: true });
            document.dispatchEvent(event);
            return event.clipboardData.getData("text/plain");
        }"""
    )
    assert re.search(r"\b1500\b", copied)


def test_paper_has_every_row_and_no_layout_of_a_phone(page: Page, tmp_path: Path) -> None:
    page.wait_for_selector("html[data-drawn]", timeout=DRAWN_MS)
    printed = tmp_path / "report.pdf"
    page.pdf(path=printed, format="A4", prefer_css_page_size=True)
    sheets = PdfReader(printed).pages
    for sheet in sheets:
        assert [float(side) for side in sheet.mediabox[2:]] == pytest.approx(A4_POINTS, abs=1.5)
    words = re.sub(r"\s+", " ", " ".join(sheet.extract_text() for sheet in sheets))
    for row in ("never above 50 ms", "lost ones hide the tail", "the probe waits for a page", "rtt.p<N>_ms"):
        assert row in words, row
    assert words.count('100p, "large"') > page.locator(f"{METRICS} tbody th").count() / 2
    page.emulate_media(media="print")
    page.set_viewport_size(ViewportSize(width=720, height=1000))  # what a sheet of A4 has
    assert page.locator("#verdicts thead").first.evaluate("(e) => getComputedStyle(e).position") == "static"
    assert page.locator("#verdicts tbody tr").first.evaluate("(e) => getComputedStyle(e).display") == "table-row"
    assert page.locator("#contents:visible, .tools:visible").count() == 0
    page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    cut = page.locator("table").evaluate_all(
        "(all) => all.filter((t) => t.getBoundingClientRect().right > 721).map((t) => t.className || t.innerText)"
    )
    assert cut == []
    stuck = page.locator(".sheets *").evaluate_all(
        "(all) => all.filter((e) => getComputedStyle(e).position !== 'static').length"
    )
    assert stuck == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_contrast_enough(page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    assert page.evaluate(TOO_FAINT) == []


TOO_FAINT = """() => {
    const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
        .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
        .reduce((sum, c, index) => sum + c * [0.2126, 0.7152, 0.0722][index], 0);
    const colour = (text) => text.match(/[\\d.]+/g).map(Number);
    const behind = (element) => {
        for (; element; element = element.parentElement) {
            const paper = colour(getComputedStyle(element).backgroundColor);
            if (paper.length < 4 || paper[3] > 0) return paper;
        }
        return [255, 255, 255];
    };
    const found = [];
    for (const element of document.querySelectorAll("body *:not(script, title, option)")) {
        const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
        if (!own || !element.checkVisibility()) continue;
        const style = getComputedStyle(element);
        const ink = element.closest("svg") ? style.fill : style.color;
        const [one, other] = [light(colour(ink)), light(behind(element))];
        const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
        if (contrast < 4.5) found.push([element.tagName, element.textContent.trim().slice(0, 30), contrast]);
    }
    return found;
}"""
"""The texts whose contrast with their background is less than 4.5:1 (WCAG 2.2, 1.4.3)."""
