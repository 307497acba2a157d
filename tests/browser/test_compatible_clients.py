"""Other people's clients of `bufferscope serve --compatible`: Chromium as a client of HTTP/2 and of WebSockets."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from laboratory import running
from playwright.sync_api import Browser, Page

from bufferscope.engines.live.program import program

pytestmark = pytest.mark.browser

PATIENCE_S = 60
BYTES = 3_000_000
PROTOCOL = "performance.getEntriesByType('navigation')[0].nextHopProtocol"
KEYS = {
    "large_download_url",
    "small_download_url",
    "upload_url",
    "large_https_download_url",
    "small_https_download_url",
    "https_upload_url",
}
LOADS = """async bytes => {
    const down = await fetch(`/__down?bytes=${bytes}`);
    const length = (await down.arrayBuffer()).byteLength;
    const up = await fetch("/__up", { method: "POST", body: new Uint8Array(bytes) });
    return [down.status, length, up.status, up.headers.get("server-timing")];
}"""
NDT7 = """async bytes => {
    const measured = () => new Promise((resolve) => {
        const socket = new WebSocket(`wss://${location.host}/ndt/v7/upload`, "net.measurementlab.ndt.v7");
        let last = null;
        socket.onopen = () => { for (let sent = 0; sent < bytes; sent += 100000) socket.send(new Uint8Array(100000)); };
        socket.onmessage = (event) => {
            last = JSON.parse(event.data);
            if (last.AppInfo.NumBytes >= bytes) socket.close();
        };
        socket.onclose = () => resolve(last);
    });
    // The test of another program ends some seconds after its last request.
    for (let tries = 0; tries < 40; tries++) {
        const found = await measured();
        if (found) return found;
        await new Promise((resolve) => setTimeout(resolve, 250));
    }
    return null;
}"""


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, str]]:
    """The address of a server that is open to this machine, and its secret."""
    command = [str(program()), "serve", "--listen", "127.0.0.1:0", "--compatible", "--allow", "127.0.0.0/8"]
    with running(command, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        address = next(line.strip() for line in process.stdout if line.strip().startswith("http://"))
        host, _, secret = address.removeprefix("http://").partition("/#")
        yield f"https://{host}", secret


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page that accepts the server's own certificate."""
    context = chromium.new_context(ignore_https_errors=True)
    context.set_default_timeout(PATIENCE_S * 1000)
    yield context.new_page()
    context.close()


def test_responsiveness_and_a_load_over_http_2(page: Page, server: tuple[str, str]) -> None:
    address, secret = server
    answer = page.goto(f"{address}/.well-known/nq")
    assert answer is not None
    assert answer.status == 200
    assert page.evaluate(PROTOCOL) == "h2"
    config = json.loads(answer.text())
    assert config["version"] == 1
    assert set(config["urls"]) == KEYS
    assert all(url.startswith(f"{address}/api/v1/") for url in config["urls"].values())
    with page.expect_download() as download:
        page.evaluate("address => { location = address }", f"{address}/{secret}/__down?bytes={BYTES}")
    assert Path(download.value.path()).stat().st_size == BYTES


def test_the_page_stays_on_http_1_and_loads_and_ndt7_work_from_there(page: Page, server: tuple[str, str]) -> None:
    address, _ = server
    answer = page.goto(address)
    assert answer is not None
    assert answer.status == 200
    assert page.evaluate(PROTOCOL) == "http/1.1"
    down, length, up, timing = page.evaluate(LOADS, BYTES)
    assert (down, length, up) == (200, BYTES, 200)
    assert timing.startswith("cfReqDur;dur=")
    measured = page.evaluate(NDT7, BYTES)
    assert measured is not None
    assert measured["Test"] == "upload"
    assert BYTES <= measured["AppInfo"]["NumBytes"] < 1.01 * BYTES + 10_000
    assert measured["TCPInfo"]["BytesReceived"] >= BYTES
