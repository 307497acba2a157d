"""The report in a browser: everything drawn, without network, on any screen, in both colour schemes, and on paper."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import DRAWN_MS, draw_all
from playwright.sync_api import Browser, Page, ViewportSize
from pypdf import PdfReader
from reports import DRAWN, built, document, run

pytestmark = pytest.mark.browser

FIGURES = len(DRAWN)
DESKTOP = ViewportSize(width=1280, height=900)
PHONE = ViewportSize(width=390, height=844)
WIDTHS = (320, 390, 600, 768, 1024, 1280)
BAD = ("error", "warning")
PROBLEMS: list[str] = []
"""The errors in the open pages."""

WITHIN = """(width) => [...document.querySelectorAll("figure .live canvas")]
    .every((canvas) => canvas.getBoundingClientRect().right <= width)"""
"""Whether every chart ends within the screen; charts follow a change of the screen's width a moment later."""

Opener = Callable[..., Page]


@pytest.fixture(scope="module")
def opened(chromium: Browser, two_queues: Path) -> Iterator[Opener]:
    """Opens the page from disk with the network switched off."""
    contexts = []

    def open_page(viewport: ViewportSize = DESKTOP, scripts: bool = True, **options: Any) -> Page:
        context = chromium.new_context(viewport=viewport, offline=True, java_script_enabled=scripts, **options)
        context.set_default_timeout(DRAWN_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: PROBLEMS.append(message.text) if message.type in BAD else None)
        page.on("pageerror", lambda error: PROBLEMS.append(str(error)))
        page.on("request", lambda request: PROBLEMS.append(request.url) if _is_remote(request.url) else None)
        page.goto(two_queues.as_uri())
        if scripts:
            draw_all(page)
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def desktop(opened: Opener) -> Page:
    """The page on a large screen."""
    return opened()


@pytest.fixture(scope="module")
def phone(opened: Opener) -> Page:
    """The page on a phone."""
    return opened(PHONE)


@pytest.fixture(autouse=True)
def no_problems() -> Iterator[None]:
    """No test may leave an error, a warning or a request for something remote behind."""
    PROBLEMS.clear()
    yield
    assert PROBLEMS == []


def test_every_chart_is_drawn_without_network_and_without_complaint(opened: Opener) -> None:
    page = opened()  # anew, so that `no_problems` sees it being drawn
    assert page.locator("figure").count() == FIGURES
    assert page.locator("figure .live canvas").count() == FIGURES
    for canvas in page.locator("figure .live canvas").all():
        box = canvas.bounding_box()
        assert box is not None
        assert box["width"] > 300
        assert box["height"] > 80
    assert page.locator("figure img:visible").count() == 0


def test_charts_tell_their_values_to_the_pointer(desktop: Page) -> None:
    page = desktop
    chart = page.locator("#two-queues-queue_length canvas")
    chart.scroll_into_view_if_needed()
    chart.hover(position={"x": 200, "y": 150})
    page.wait_for_selector("#vg-tooltip-element.visible", timeout=DRAWN_MS)
    words = page.locator("#vg-tooltip-element").inner_text()
    assert "queue (packets)" in words
    assert "time (s)" in words


def test_the_page_follows_the_colour_scheme_of_the_system(opened: Opener) -> None:
    page = opened(color_scheme="light")
    light = page.screenshot()
    chart = page.locator("#two-queues-rtt canvas").screenshot()
    page.emulate_media(color_scheme="dark")
    page.wait_for_selector("html[data-drawn=dark]", timeout=DRAWN_MS)
    assert page.screenshot() != light
    assert page.locator("#two-queues-rtt canvas").screenshot() != chart
    assert _brightness(page) < 60
    page.emulate_media(color_scheme="light")
    page.wait_for_selector("html[data-drawn=light]", timeout=DRAWN_MS)
    assert _brightness(page) > 200


def test_nothing_sticks_out_of_any_screen(phone: Page) -> None:
    phone.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    command = "<pre><code>bufferscope explain results/load10s/run-import-s0-32a3667e --report there</code></pre>"
    phone.evaluate("(text) => document.querySelector('main').insertAdjacentHTML('afterbegin', text)", command)
    for width in WIDTHS:
        phone.set_viewport_size({"width": width, "height": 800})
        phone.wait_for_function(WITHIN, arg=width, timeout=DRAWN_MS)
        assert phone.evaluate("document.documentElement.scrollWidth") <= width


def test_text_on_a_phone_is_not_smaller_than_14_pixels(phone: Page) -> None:
    phone.set_viewport_size(PHONE)
    smallest = phone.evaluate(
        """() => Math.min(...[...document.querySelectorAll("p, td, th, li, dd, dt, a, caption, h1, h2, h3")]
            .filter((element) => element.textContent.trim() && element.checkVisibility())
            .map((element) => parseFloat(getComputedStyle(element).fontSize)))"""
    )
    assert smallest >= 14


def test_without_scripts_the_descriptions_stay(opened: Opener) -> None:
    page = opened(scripts=False)
    assert page.locator("figure div.still:visible").count() == FIGURES
    assert page.locator("figure noscript p:visible").count() == FIGURES


def test_paper_shows_charts_and_what_is_folded(opened: Opener, tmp_path: Path) -> None:
    page = opened(color_scheme="dark")
    words = _printed(page, tmp_path)
    assert page.locator("figure canvas:visible").count() == FIGURES
    for expected in ("Congestion window", "goodput.total_mbit", "limit-100p-sim-s1-0abc1234"):
        assert expected in words, expected


def test_paper_and_browsers_without_scripts_show_stills(chromium: Browser, tmp_path: Path) -> None:
    names = ["cwnd", "rtt_cdf"]
    path = built(tmp_path, [run("50p", document=document(figures=names))], stills=True)
    for scripts in (True, False):
        context = chromium.new_context(offline=True, java_script_enabled=scripts)
        page = context.new_page()
        page.goto(path.as_uri())
        if scripts:
            draw_all(page)
            assert page.locator("figure img:visible").count() == 0
            words = _printed(page, tmp_path)
            assert page.locator("figure canvas:visible").count() == 0
            for expected in ("Congestion window", "window (packets)", "time (s)"):
                assert expected in words, expected
        assert page.locator("figure img:visible").count() == len(names)
        context.close()


def _printed(page: Page, directory: Path) -> str:
    """The words on paper; afterwards, the page looks as it does there."""
    printed = directory / "report.pdf"
    page.pdf(path=printed, format="A4", prefer_css_page_size=True)
    page.emulate_media(media="print")
    return "\n".join(sheet.extract_text() for sheet in PdfReader(printed).pages)


def test_a_chart_is_saved_with_its_heading_and_without_what_a_pointer_shows(desktop: Page) -> None:
    figure = desktop.locator("#two-queues-queue_length")
    saved = {}
    for kind in ("svg", "png"):
        with desktop.expect_download() as download:
            figure.locator(".files button", has_text=kind.upper()).click()
        assert download.value.suggested_filename == f"two-queues-queue_length.{kind}"
        saved[kind] = download.value.path().read_bytes()
    assert saved["png"].startswith(b"\x89PNG")
    picture = saved["svg"].decode()
    assert picture.startswith("<svg")
    for expected in ("Queue at r1&gt;h2", "queue (packets)", "time (s)", "#ffffff"):
        assert expected in picture, expected
    assert "hover" not in picture
    assert "crosshair" not in picture


def test_charts_beyond_the_screen_are_drawn_when_nothing_else_happens(chromium: Browser, two_queues: Path) -> None:
    context = chromium.new_context(offline=True, viewport=DESKTOP)
    page = context.new_page()
    page.goto(two_queues.as_uri())
    drawn = f"document.querySelectorAll('figure[data-drawn]').length === {FIGURES}"
    page.wait_for_function(drawn, timeout=DRAWN_MS)
    assert page.evaluate("scrollY") == 0
    context.close()


def test_headings_form_an_outline(desktop: Page) -> None:
    levels = desktop.evaluate("[...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map((h) => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def _is_remote(url: str) -> bool:
    return not url.startswith(("file:", "data:"))


def _brightness(page: Page) -> float:
    """Mean of the page's background colour channels."""
    channels: list[int] = page.evaluate(
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"
    )
    return sum(channels) / 3
