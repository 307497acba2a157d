"""The browser that tests of pages drive: the system's Chromium."""

from collections.abc import Iterator

from laboratory import program
from playwright.sync_api import Browser, sync_playwright

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
