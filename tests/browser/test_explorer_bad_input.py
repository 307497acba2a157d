"""The explorer with bad input and in poor browsers: a message says what is wrong, and the page goes on."""

import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path

import explorers
import pytest
from explorerpage import PAGE, SOURCES, Opener, opener
from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

HOME = (SOURCES / "presets" / "lines" / "home.toml").read_text(encoding="utf-8")
WITHOUT = {
    "Worker": "delete window.Worker",
    "WebAssembly": "delete window.WebAssembly",
    "DecompressionStream": "delete window.DecompressionStream",
}
NO_CANVAS = "HTMLCanvasElement.prototype.getContext = () => null"
NO_STORAGE = "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('blocked') } })"
NO_ADDRESS = "history.replaceState = () => { throw new DOMException('too often') }"


@pytest.fixture
def opened(chromium: Browser) -> Iterator[Opener]:
    """Opens a page in a browser that lacks something. It may not complain about anything."""
    with opener(chromium) as opened:
        yield opened


def _fragment(**document: object) -> str:
    return "#j=" + urlsafe_b64encode(json.dumps({"v": 1, **document}).encode()).decode().rstrip("=")


def _many(count: int, table: str) -> str:
    return HOME + "".join(f"\n{table.format(number=number, before=number - 1)}\n" for number in range(count))


PING = '[[traffic]]\nname = "p{number}"\nkind = "ping"\nfrom = "laptop"\nto = "server"'
CHAIN = '[[link]]\nname = "l{number}"\nends = ["n{before}", "n{number}"]\nrate = "1mbit"'
SCHEDULE = ", ".join(f'["{step}ms", "{1 + step % 9}mbit"]' for step in range(4000))


REFUSED: list[tuple[dict[str, object], str]] = [
    ({"sets": ["traffic.photos.flows=10000"]}, "10000 flows, and a browser takes at most 4000"),
    ({"toml": _many(10_000, PING)}, "traffic: found 10002 in all; allowed: at most 10000"),
    ({"toml": _many(5000, CHAIN)}, "allowed: at most 1000 nodes"),
    ({"sets": ["link.line.rate=0mbit"]}, "allowed: a rate from 1kbit to 400gbit"),
    ({"sets": ["link.line.rate=-1mbit"]}, "negative"),
    ({"sets": ["link.line.rate=1e30"]}, "allowed: a rate"),
    ({"sets": ["duration=1000000s"]}, "allowed: a time from 1ms to 86400s"),
    ({"sets": ["duration=86400s", "sample=20ms"]}, "samples, and a browser takes at most 20000000"),
    ({"sets": ['link.line.queue={ qdisc = "nonsense" }']}, "allowed: pfifo, bfifo"),
    ({"sets": ["link.line.colour=red"]}, "unknown key"),
    ({"toml": "a = " + "[" * 100_000}, "cannot recurse further"),
    ({"toml": "a" + ".a" * 50_000 + " = 1"}, "recursion limit"),
    ({"toml": "".join(f"key{number} = 1\n" for number in range(5000)) + HOME}, "key0: found an unknown key"),
    ({"toml": "\0"}, "binary data"),
    ({"point": 10**9}, "there is no point 1000000000"),
    ({"changes": [{"at_ns": 5_000_000_000, "sets": ["link.line.rate=0mbit"]}]}, "allowed: a rate"),
]


def test_what_cannot_run_is_refused_with_a_reason() -> None:
    base = {"toml": HOME, "sets": [], "point": 0, "seed": 1, "changes": [], "watch": [], "only_open": True}
    for (_, reason), answer in zip(REFUSED, explorers.in_node(base | request for request, _ in REFUSED), strict=True):
        assert reason in answer["refused"]["message"]
        assert len(json.dumps(answer)) < 40_000, "a message has a bounded length"


def test_links_with_too_much_are_not_opened_in_part(opened: Opener) -> None:
    page = opened(_fragment(preset="no-such-experiment"))
    assert 'there is no experiment "no-such-experiment"' in page.page.locator("#notice").inner_text()
    assert page.meaning["goodput"] > 0
    for document in (
        {"changes": [{"at_ns": at_ns, "sets": ["link.line.rate=1mbit"]} for at_ns in range(51)]},
        {"sets": ["link.line.rate=1mbit"] * 201},
        {"files": {f"trace{number}": "" for number in range(21)}},
    ):
        page.page.locator("#notice").evaluate("notice => notice.textContent = ''")
        page.follow(_fragment(toml=HOME, **document))
        page.page.locator("#notice", has_text="longer than a link of this page can be").wait_for()
        assert page.state["toml"] == HOME
        assert page.state["sets"] == page.state["changes"] == []
    page.follow(_fragment(toml=HOME, changes=[{"at_ns": 2.5, "sets": []}]))
    page.page.locator("#changes li").wait_for()
    page.settle()
    assert page.refused == ""
    page.follow(_fragment(toml=HOME, sets=["link.line.rate=0mbit"]))
    page.page.locator("#refused", has_text="allowed: a rate from 1kbit").wait_for()
    page.choose("line:dsl")
    assert page.refused == ""


def test_a_change_too_many_is_refused_and_none_is_lost(opened: Opener) -> None:
    changes = [{"at_ns": at_ns * 1_000_000, "sets": ["link.line.rate=9mbit"]} for at_ns in range(50)]
    page = opened(_fragment(toml=HOME, changes=changes))
    page.page.check('input[name="scope"][value="now"]')
    page.seek(20)
    page.slide("rate", 4e6)
    assert "at most 50 changes" in page.page.locator("#notice").inner_text()
    assert page.state["changes"] == changes


def test_a_large_experiment_does_not_hold_the_page_up(opened: Opener) -> None:
    chain = _many(120, CHAIN).replace('"n-1"', '"server"')
    large = _fragment(toml=chain + _many(30, PING).removeprefix(HOME), sets=["duration=2500ms"])
    page = opened()
    page.page.set_default_timeout(60_000)
    page.follow(large)
    page.page.locator("#network", has_text="64 nodes are not in the drawing").wait_for()
    page.settle()
    assert page.refused == ""
    assert page.ask("explorer.port()") == "modem>server"
    page.choose("line:home")
    assert page.meaning["goodput"] > 0


def test_a_newer_request_does_not_wait_for_a_worker_that_cannot_hear_it(chromium: Browser) -> None:
    page = chromium.new_page()
    page.set_default_timeout(20_000)
    page.goto((explorers.BUILT / "browser.html").as_uri())
    short = {"toml": HOME, "sets": ["duration=3s"], "changes": [], "seed": 1, "watch": []}
    kinds = page.evaluate(
        """async ([short, schedule]) => {
            const kinds = [(await run(client, short)).answer.kind];
            window.Worker = class extends Worker {
                constructor(...given) { super(...given); kinds.push("another worker"); }
            };
            // Its worker reads the schedule hundreds of times before it hears anything.
            const changes = Array.from({ length: 600 }, (_, at_ns) => (
                { at_ns, sets: [`link.line.rate=[${schedule}]`] }));
            const note = ({ kind }) => kinds.push(kind);
            client.run({ ...short, changes }, { opened: note, refused: note, done: note });
            await new Promise((resume) => setTimeout(resume, 50));
            kinds.push((await run(client, short)).answer.kind);
            return kinds;
        }""",
        [short, SCHEDULE],
    )
    assert kinds == ["done", "another worker", "done"]
    page.close()


@pytest.mark.parametrize("missing", WITHOUT)
def test_a_browser_without_what_the_simulator_needs_says_so(chromium: Browser, missing: str) -> None:
    context = chromium.new_context(locale="en", offline=True)
    context.add_init_script(WITHOUT[missing])
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(PAGE.as_uri())
    page.locator("#refused", has_text=f"This browser lacks {missing}").wait_for()
    assert page.locator("html[data-busy]").count() == 0
    page.locator("#editor").evaluate("editor => editor.open = true")
    page.locator("#text").focus()
    page.keyboard.press("Control+Space")
    page.locator("#completion-about", has_text="failed").wait_for()
    assert said == []
    context.close()


def test_a_damaged_page_says_that_the_simulator_does_not_run(chromium: Browser, tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    simulator = re.search(r"H4sIA[A-Za-z0-9+/=]{100000,}", text)
    assert simulator is not None
    half = simulator[0][: len(simulator[0]) // 8 * 4]
    damaged = tmp_path / "index.html"
    damaged.write_text(text.replace(simulator[0], half), encoding="utf-8")
    page: Page = chromium.new_page(locale="en")
    said: list[str] = []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(damaged.as_uri())
    page.locator("#refused", has_text="The simulator does not run").wait_for()
    assert "The simulator failed" in page.locator("#refused").inner_text()
    assert said == []
    page.close()


def test_a_browser_without_a_canvas_storage_or_addresses_has_the_rest(chromium: Browser) -> None:
    context = chromium.new_context(locale="en", reduced_motion="reduce", offline=True)
    for each in (NO_CANVAS, NO_STORAGE, NO_ADDRESS):
        context.add_init_script(each)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(PAGE.as_uri())
    page.locator("html:not([data-busy])").wait_for(state="attached")
    page.locator("#no-picture", has_text="does not draw the packets").wait_for()
    page.select_option("#language", "pt")
    page.select_option("#language", "en")
    page.evaluate("explorer.seek(6.1e9)")
    page.locator("#stage-now canvas[aria-label*='queue']").wait_for()
    assert page.evaluate("explorer.counts().queue") > 100
    page.locator("#menu").evaluate("menu => menu.open = true")
    page.click("#save-gif")
    page.locator("#notice", has_text="animation could not be made").wait_for()
    assert page.locator("#save-gif").is_enabled()
    page.wait_for_timeout(400)
    assert said == []
    context.close()
