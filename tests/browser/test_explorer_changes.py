"""Changes during a run in the explorer: what the picture then shows, and what an exported file can say of them."""

import json
import re
import shlex
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path

import explorers
import pytest
from browsers import eventually
from explorerpage import PAGE, SOURCES, Explorer
from playwright.sync_api import Browser

import bufferscope as bs
from bufferscope.model.experiment import Experiment

pytestmark = pytest.mark.browser

LINES = SOURCES / "presets" / "lines"
HOME, WIFI = ((LINES / f"{name}.toml").read_text(encoding="utf-8") for name in ("home", "wifi"))
ADDED = 'traffic.later={ kind = "tcp", from = "laptop", to = "server" }'


@pytest.fixture(scope="module")
def page(chromium: Browser) -> Iterator[Explorer]:
    """A page that all tests use. It may not complain about anything."""
    assert PAGE.exists(), "the explorer is not built; run `make explorer`"
    page = Explorer(chromium)
    yield page
    assert page.close() == []


def _open(page: Explorer, **document: object) -> None:
    packed = urlsafe_b64encode(json.dumps({"v": 1, **document}).encode()).decode().rstrip("=")
    page.follow(f"#j={packed}")


def _saved(page: Explorer, button: str = "save-toml") -> str:
    page.page.locator("#menu").evaluate("menu => menu.open = true")
    with page.page.expect_download() as download:
        page.page.click(f"#{button}")
    return Path(download.value.path()).read_text(encoding="utf-8")


def test_a_file_has_the_changes_of_rates_and_makes_the_same_run(page: Explorer) -> None:
    page.choose("line:home")
    page.press("keep")
    page.page.check('input[name="scope"][value="now"]')
    page.seek(15)
    page.slide("rate", 4e6)
    page.seek(20.5)
    page.slide("rate", 8e6)
    first, second = page.state["changes"]
    text = _saved(page)
    assert not text.startswith("#")
    assert page.page.locator("#changes small").all_inner_texts() == ["", ""]
    stepped = bs.Simulation(HOME, seed=1)
    for change in (first, second):
        stepped.advance(until=change["at_ns"] / 1e9)
        stepped.set(change["sets"])
    assert bs.Simulation(text, seed=1).finish().metrics == stepped.finish().metrics
    assert _saved(page, "save-before").splitlines() == HOME.splitlines()
    page.page.locator("#menu").evaluate("menu => menu.open = true")
    page.press("copy-sim")
    commands = page.page.locator("#command").inner_text().splitlines()
    assert [shlex.split(each)[2] for each in commands] == ["explorer-before.toml", "explorer.toml"]
    page.press("keep")


def test_what_a_file_cannot_say_is_named(page: Explorer) -> None:
    page.choose("line:home")
    page.page.check('input[name="scope"][value="now"]')
    page.seek(15)
    page.slide("rate", 4e6)
    page.pick("discipline", "fq_codel")
    text = _saved(page)
    lost = 'the change at 15s: link.line.forward.queue={ qdisc = "fq_codel" }'
    assert text.splitlines()[1] == f"#   {lost}"
    assert lost in page.page.locator("#notice").inner_text()
    assert 'rate = [["0s", "10mbit"], ["15s", "4mbit"]]' in text
    assert page.page.locator("#changes small").all_inner_texts() == ["(only in the link)"]
    bs.Simulation(text, seed=1)
    page.page.locator("#editor").evaluate("editor => editor.open = true")
    page.page.locator("#text").fill(HOME.replace('"200p"', '"150p"'))
    assert eventually(page.page, lambda: page.state["toml"], lambda text: '"150p"' in text)
    page.settle()
    assert len(page.state["changes"]) == 1, "the editor keeps changes during the run"
    page.page.check('input[name="scope"][value="whole"]')


def test_an_export_names_the_files_that_it_needs(page: Explorer) -> None:
    _open(
        page, toml=HOME.replace('rate = "10mbit"', 'rate = { trace = "line.trace" }'), files={"line.trace": "1\n2\n3\n"}
    )
    assert page.refused == ""
    assert 'trace = "line.trace"' in _saved(page)
    assert "It needs beside it: line.trace" in page.page.locator("#notice").inner_text()
    page.page.check('input[name="scope"][value="now"]')
    _open(page, toml=HOME, changes=[{"at_ns": 9_000_000_000, "sets": ['link.line.rate={ preset = "umts-up" }']}])
    assert _saved(page).splitlines()[1].endswith('the change at 9s: link.line.rate={ preset = "umts-up" }')
    page.page.check('input[name="scope"][value="whole"]')


def test_traffic_and_flows_that_a_change_adds_have_their_own_colours(page: Explorer) -> None:
    more = [{"at_ns": 8_000_000_000, "sets": ["traffic.photos.flows=3", ADDED]}]
    _open(page, toml=HOME, changes=more)
    legend = page.page.locator("#legend li").all_inner_texts()
    assert legend[:5] == ["photos/1", "photos/2", "photos/3", "ping", "later/1"]
    colours = page.page.locator("#legend .swatch").evaluate_all("all => all.map((each) => each.style.background)")
    assert len(set(colours[:5])) == 5
    page.seek(25)
    shown = page.page.locator("#charts figure").last.locator(".readout").inner_text()
    assert all(name in shown for name in legend[:3])
    request = explorers.request(Experiment("home", HOME.encode(), "home.toml", ())) | {"changes": more}
    (answer,) = explorers.in_node([request])
    assert answer["opened"]["flows"] == legend[:5]


def test_packets_of_a_queue_for_all_stations_leave_it(page: Explorer) -> None:
    page.choose("line:wifi")
    for seconds in (4, 9, 14.5):
        page.seek(seconds)
        waiting = int(re.search(r"(\d+) packets wait", page.page.locator("#sentence").inner_text())[1])  # type: ignore[index]
        assert abs(waiting - page.ask("explorer.counts()")["queue"]) <= 3, "those of the other station, too"
    _open(page, toml=WIFI, watch="router>tablet")
    page.seek(14.5)
    assert "one queue for all stations, which router>laptop shows" in page.page.locator("#sentence").inner_text()
    assert page.ask("explorer.counts()")["queue"] == 0
    assert page.ask("explorer.counts()")["ring"] > 0
