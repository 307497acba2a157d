"""The browser that tests of pages drive: the system's Chromium."""

from collections.abc import Callable, Iterator
from time import monotonic
from typing import TypeVar

from laboratory import program
from playwright.sync_api import Browser, Page, sync_playwright

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def launched() -> Iterator[Browser]:
    """The running browser; without one, the tests fail and say what to install."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program("chromium"), args=ARGUMENTS)
        yield browser
        browser.close()


T = TypeVar("T")

DRAWN_MS = 60_000
FRAME_MS = 30_000
FRAMES = """patience_ms => new Promise((drawn, failed) => {
    setTimeout(() => failed(new Error(`no frame within ${patience_ms} ms`)), patience_ms);
    requestAnimationFrame(() => requestAnimationFrame(drawn));
})"""


def await_frames(page: Page) -> None:
    """Wait until the browser has drawn what has changed. A hidden page, or one whose drawing hangs, fails the test."""
    page.evaluate(FRAMES, FRAME_MS)


def eventually(page: Page, read: Callable[[], T], is_expected: Callable[[T], bool]) -> bool:
    """Read again until the value is the expected one, as long as a page may take to draw it; whether it was."""
    end = monotonic() + FRAME_MS / 1000
    while not is_expected(read()):
        if monotonic() > end:
            return False
        page.wait_for_timeout(20)
    return True


def draw_all(page: Page) -> None:
    """Scroll to every figure, and wait until all are interactive: a page draws what comes near the screen."""
    for figure in page.locator("figure").all():
        figure.scroll_into_view_if_needed()
        figure.page.wait_for_function(
            "(figure) => 'drawn' in figure.dataset || 'failed' in figure.dataset",
            arg=figure.element_handle(),
            timeout=DRAWN_MS,
        )
    page.evaluate("scrollTo(0, 0)")
    failed = page.locator("figure[data-failed]").evaluate_all("all => all.map((each) => each.innerText)")
    assert failed == []
