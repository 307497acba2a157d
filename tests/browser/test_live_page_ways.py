"""The page of `bufferscope serve` over TLS, and in a browser without WebRTC, side by side on this machine."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pagetest
import pytest
from laboratory import first_undisturbed, running
from playwright.sync_api import Browser, Page

from bufferscope.engines.live.program import program

pytestmark = pytest.mark.browser

SERVER_MBIT = 20
PATIENCE_MS = 90_000
ATTEMPTS = 2
WITHOUT_WEBRTC = "delete globalThis.RTCPeerConnection"


@contextmanager
def server(directory: Path, name: str) -> Iterator[str]:
    """A server of this machine; gives what follows the scheme in the address of its page."""
    token = directory / f"token-{name}"
    command = [
        str(program()),
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--token-file",
        str(token),
        "--rate",
        str(SERVER_MBIT),
    ]
    with running(command) as process:
        assert process.stdout is not None
        yield next(line.split("://")[1].strip() for line in process.stdout if "://" in line)


def begin(browser: Browser, url: str, parts: set[str], script: str = "") -> Page:
    """A page whose test has begun."""
    page = browser.new_context(ignore_https_errors=True, accept_downloads=True, locale="en-GB").new_page()
    if script:
        page.add_init_script(script)
    pagetest.visit(page, url)
    page.get_by_text("Choose the parts").click()
    for part in {"download", "upload", "both"} - parts:
        page.get_by_label(part, exact=True).uncheck()
    page.get_by_role("button", name="Start the test").click()
    return page


def saved(page: Page, file: Path) -> list[dict[str, Any]]:
    """The events of a page's test, once it is over."""
    page.locator("#result:visible, #error:visible:not(:empty)").first.wait_for(timeout=PATIENCE_MS)
    assert page.locator("#error").inner_text() == ""
    with page.expect_download() as download:
        page.locator("#save").click()
    download.value.save_as(file)
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@dataclass(frozen=True)
class Shown:
    """A page after its test, and the events of the test."""

    page: Page
    start: dict[str, Any]
    end: dict[str, Any]


@pytest.fixture
def pages(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> tuple[Shown, Shown]:
    """The page over TLS, and the page without WebRTC; skips the test where this machine leaves them no time."""

    def attempt() -> tuple[tuple[Shown, Shown], list[str]]:
        directory = tmp_path_factory.mktemp("pages")
        with server(directory, "tls") as over_tls, server(directory, "clear") as in_clear:
            secured = begin(chromium, f"https://{over_tls}", {"download"})
            plain = begin(chromium, f"http://{in_clear}", set(), WITHOUT_WEBRTC)
            files = directory / "secured.jsonl", directory / "plain.jsonl"
            shown = Shown(secured, *saved(secured, files[0])), Shown(plain, *saved(plain, files[1]))
        return shown, pagetest.disturbances(*files)

    return first_undisturbed(attempt, ATTEMPTS)


def test_the_page_measures_over_tls_and_without_webrtc(pages: tuple[Shown, Shown]) -> None:
    secured, plain = pages
    assert plain.start["parameters"]["pings"] == "websocket"
    assert "WebSocket" in plain.page.locator("#way").inner_text()
    assert any("UDP" in text for text in plain.page.locator("#beyond li").all_inner_texts())
    assert len(plain.end["observations"]["phases"][0]["echoes"]) > 100

    assert secured.page.evaluate("crossOriginIsolated"), "over TLS, browsers give exact clocks"
    assert secured.start["parameters"]["pings"] == "webrtc"
    assert "WebRTC" in secured.page.locator("#way").inner_text()
    idle, download, _ = secured.end["observations"]["phases"]
    assert [each["ttl"] for each in idle["ladder"]] == [1], "the browser is the next hop, and answers"
    assert idle["ladder"][0]["kind"] == "destination"
    assert len(download["stages"]) > 100, "the server's kernel has stamped what it sent"
    (phase,) = secured.end["verdict"]["phases"]
    (down,) = (each for each in phase["numbers"]["directions"] if each["direction"] == "down")
    assert down["goodput"]["mean_bps"] == pytest.approx(SERVER_MBIT * 1e6, rel=0.15)
    assert phase["where"] == []
    assert phase["numbers"]["loaded"]["lost"] <= 0.02 * phase["numbers"]["loaded"]["count"]
