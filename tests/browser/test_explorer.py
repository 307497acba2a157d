"""The explorer's page: what a reader moves, sees, shares and takes along."""

import csv
import gzip
import io
import json
import os
import re
import shlex
import tomllib
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from explorerpage import LANGUAGES, PAGE, SOURCES, Explorer, Opener, opener, texts
from laboratory import Answer
from PIL import Image, ImageSequence
from playwright.sync_api import Browser

from bufferscope.analysis.explanation import explain_run
from bufferscope.running.stepping import Simulation

pytestmark = pytest.mark.browser

IS_WHOLE = "WHOLE_CATALOGUE" in os.environ
HOME = SOURCES / "presets" / "lines" / "home.toml"
LONG_RUNS = ("lncc-window", "lncc-surface", "lncc-ring", "lncc-qdisc", "dark-reaction-time", "dark-wifi-shared")
"""Presets whose runs take seconds in a browser."""
WIDTHS = (200, 320, 360, 768, 1280, 1920, 3840)


@pytest.fixture(scope="module")
def opened(chromium: Browser) -> Iterator[Opener]:
    """Opens the page; it may not have complained about anything when all tests are over."""
    with opener(chromium) as opened:
        yield opened


@pytest.fixture(scope="module")
def page(opened: Opener) -> Explorer:
    """A page that several tests use."""
    return opened()


@pytest.fixture
def home(page: Explorer) -> Explorer:
    """The same page, with the first experiment as it is."""
    if page.page.locator("#keep").get_attribute("aria-pressed") == "true":
        page.press("keep")
    page.page.check('input[name="scope"][value="whole"]')
    page.choose("line:home")
    return page


def test_the_picture_has_the_packets_of_the_run(home: Explorer) -> None:
    home.seek(1)
    assert home.ask("explorer.counts()")["queue"] == 0
    assert "queue of modem is empty" in home.page.locator("#sentence").inner_text()
    home.seek(6.1)
    counts = home.ask("explorer.counts()")
    assert 190 <= counts["queue"] <= 200, "the buffer has 200 places"
    assert counts["wire"] > 0
    label = home.page.locator("#stage-now canvas").get_attribute("aria-label") or ""
    assert str(counts["queue"]) in label
    queue = int(re.search(r"(\d+) packets wait", home.page.locator("#sentence").inner_text())[1])  # type: ignore[index]
    assert abs(queue - counts["queue"]) <= 3, "the sentence has the last sample, the picture every packet"


@pytest.mark.skipif(not IS_WHOLE, reason="runs of 1500 s")
def test_the_packets_of_any_time_of_a_long_run_are_shown(page: Explorer) -> None:
    page.choose("dark-reaction-time")
    for seconds in (1400, 600, 20):
        page.seek(seconds)
        page.page.locator("#stage-now canvas:not([aria-label*=' 0 on the wire'])").wait_for()
        waiting = int(re.search(r"(\d+) packets wait", page.page.locator("#sentence").inner_text())[1])  # type: ignore[index]
        assert abs(waiting - page.ask("explorer.counts()")["queue"]) <= 3


def test_the_picture_plays_and_steps(opened: Opener) -> None:
    moving = opened(reduced_motion="no-preference")
    begin = moving.ask("explorer.time()")
    assert begin >= 1.7e9, "it opens shortly before the load begins, and plays"
    moving.page.locator("#play").filter(has_text="Pause").click()
    stopped = moving.ask("explorer.time()")
    moving.press("step")
    assert stopped < moving.ask("explorer.time()") < stopped + 0.1e9
    moving.press("back")
    moving.press("back")
    assert moving.ask("explorer.time()") < stopped + 0.1e9


@pytest.mark.parametrize("preset", ["line:home", *(["line:wifi", "lncc-bql", "l4s", "ucas-mitigate"] * IS_WHOLE)])
def test_every_control_moves_the_run(page: Explorer, preset: str) -> None:
    page.choose(preset)
    for control in page.controls():
        root = page.page.locator(f'[data-control="{control}"]')
        kind = (root.get_attribute("class") or "").split()[-1]
        if kind == "slider":
            for end in ("least", "most"):
                page.slide(control, end)
                assert page.refused == "", (control, end)
        elif kind == "choice":
            values = root.locator("option").evaluate_all("all => all.map((each) => each.value)")
            # A discipline has keys of its own; the values of other controls are alike.
            for value in values if IS_WHOLE or control == "discipline" else (values[0], values[-1]):
                page.pick(control, value)
                assert page.refused == "", (control, value)
                assert root.locator("select").input_value() == value
            page.pick(control, values[1])
        else:
            page.tick(control)
            assert page.refused == "", control
        assert page.state["sets"], control
        page.press("reset")


def test_every_preset_opens(page: Explorer) -> None:
    options = page.page.locator("#preset option:not([hidden])")
    presets = options.evaluate_all("all => all.map((each) => each.value)")
    assert len(presets) >= 35
    for preset in presets:
        if preset in LONG_RUNS and not IS_WHOLE:
            continue
        if preset.startswith("line:") or IS_WHOLE or preset in ("ucas-reproduce", "l4s", "dark-3g", "wifi-latency"):
            page.choose(preset)
            assert page.ask("explorer.port()") != ""
            assert page.meaning["goodput"] >= 0
        else:
            # Until its first packets are shown; the next one does not wait for the end of its run.
            page.page.select_option("#preset", preset)
            title = tomllib.loads((PAGE.parents[1] / "model" / "catalogue" / f"{preset}.toml").read_text())["title"]
            page.page.locator("#experiment-title", has_text=title).wait_for()
        assert page.refused == "", preset


def test_the_numbers_are_those_of_explain(home: Explorer) -> None:
    found = home.meaning
    run = Simulation(str(HOME), seed=1).finish()
    explained = explain_run(run)
    (call,), (game,), (web,) = (explained.of(kind) for kind in ("call", "game", "page"))
    assert found["call"]["score"] == pytest.approx(call.numbers["mos"], rel=1e-6)
    assert found["game"]["above30"] == pytest.approx(game.numbers["above_30_ms"])
    assert found["game"]["above50"] == pytest.approx(game.numbers["above_50_ms"])
    assert found["page"]["loaded"] / 1e9 == pytest.approx(web.numbers["page_s"], rel=1e-3)
    assert found["goodput"] / 1e6 == pytest.approx(run.metrics["goodput.photos_mbit"], rel=5e-3)


def test_the_delay_can_be_heard(home: Explorer) -> None:
    home.seek(20)
    home.page.evaluate("""() => {
        window.tones = [];
        const start = OscillatorNode.prototype.start;
        OscillatorNode.prototype.start = function (at) {
            window.tones.push([this.frequency.value, at]);
            return start.call(this, at);
        };
    }""")
    home.page.click("#listen")
    tones = home.ask("window.tones")
    spoken, answered = ([at for hertz, at in tones if hertz == each] for each in (740, 440))
    assert len(spoken) == len(answered) == 6
    assert answered[0] - spoken[0] == pytest.approx(0.22, abs=0.04), "a ping's round trip"


def test_undo_redo_and_reset(home: Explorer) -> None:
    home.slide("rate", 2e6)
    home.pick("discipline", "codel")
    both = home.state["sets"]
    assert len(both) == 2
    home.press("undo")
    assert home.state["sets"] == both[:1]
    home.press("undo")
    assert home.state["sets"] == []
    home.press("redo")
    home.press("redo")
    assert home.state["sets"] == both
    home.press("reset")
    assert home.state["sets"] == []
    assert home.page.locator("#reset").is_disabled()


def test_a_change_from_the_picture_s_time_on(home: Explorer) -> None:
    home.seek(15)
    before = home.meaning
    home.page.check('input[name="scope"][value="now"]')
    home.pick("discipline", "fq_codel")
    (change,) = home.state["changes"]
    assert (change["at_ns"], home.state["sets"]) == (15e9, [])
    assert home.meaning["rtt"]["p50"] < before["rtt"]["p50"]
    home.seek(12)
    assert home.ask("explorer.counts()")["queue"] > 120
    assert home.page.locator('[data-control="discipline"] select').input_value() == "pfifo"
    home.seek(25)
    assert home.ask("explorer.counts()")["queue"] < 30
    assert home.page.locator('[data-control="discipline"] select').input_value() == "fq_codel"
    home.page.locator("#changes button").click()
    home.settle()
    assert home.state["changes"] == []


def test_before_and_after_have_the_same_traffic(home: Explorer) -> None:
    home.press("keep")
    home.pick("discipline", "codel")
    assert home.page.locator("#stage-before").is_visible()
    numbers = home.page.locator("#numbers").inner_text()
    assert "before: 255\u00a0ms" in numbers
    assert home.page.locator("#charts path[stroke-dasharray='4 3']").count() >= 2


def test_a_link_brings_everything_back(home: Explorer, opened: Opener) -> None:
    home.press("keep")
    home.slide("buffer", 60)
    home.seek(10)
    home.page.check('input[name="scope"][value="now"]')
    home.slide("rate", 4e6)
    home.press("share")
    fragment = home.page.evaluate("location.hash")
    assert len(fragment) < 1000
    other = opened(fragment)
    assert other.state == home.state
    assert other.meaning == home.meaning
    assert other.ask("explorer.time()") == home.ask("explorer.time()")
    other.page.locator("#stage-before").wait_for()


def test_the_address_of_explore_is_opened(page: Explorer) -> None:
    text = HOME.read_text(encoding="utf-8")
    document = {"v": 1, "toml": text, "sets": ["link.line.rate=3mbit"], "seed": 7, "watch": "nowhere>else"}
    packed = urlsafe_b64encode(gzip.compress(json.dumps(document).encode())).decode().rstrip("=")
    page.follow(f"#e={packed}")
    page.page.locator('[data-control="rate"] output', has_text="3 Mbit/s").wait_for()
    page.settle()
    assert (page.state["seed"], page.state["sets"]) == (7, ["link.line.rate=3mbit"])
    assert page.ask("explorer.port()") == "modem>server", "there is no such port, so the page chooses"


def test_bad_links_do_not_break_the_page(opened: Opener) -> None:
    bad = opened("#z=AAAA")
    assert "cannot be opened" in bad.page.locator("#notice").inner_text()
    assert bad.meaning["goodput"] > 0
    bomb = urlsafe_b64encode(b"[" * 100_000).decode().rstrip("=")
    wrong = b'{"v":1,"toml":"title = 1","sets":[1,"x",{}],"point":-1,"seed":1e99,"changes":[{"at_ns":"a"}],"files":[]}'
    for fragment in ("#j=%00", "#j=e30", "#e=H4sI", f"#j={bomb}", "#j=" + "A" * 1_100_000):
        bad.page.locator("#notice").evaluate("notice => notice.textContent = ''")
        bad.follow(fragment)
        bad.page.locator("#notice", has_text="cannot be opened").wait_for()
    bad.follow("#j=" + urlsafe_b64encode(wrong).decode().rstrip("="))
    bad.page.locator("#refused", has_text="title").wait_for()
    bad.choose("line:home")
    assert bad.refused == ""
    assert bad.meaning["goodput"] > 0


def test_the_exports_are_read_by_their_own_readers(
    home: Explorer, cli: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.slide("buffer", 50)
    home.pick("congestion:photos", "reno")
    saved = {}
    for end in ("toml", "csv", "svg"):
        home.page.locator("#menu").evaluate("menu => menu.open = true")
        with home.page.expect_download() as download:
            home.page.click(f"#save-{end}")
        saved[end] = Path(download.value.path()).read_text(encoding="utf-8")
    assert '[[link]]\nname = "wifi"' in saved["toml"], "what was not changed is as it was written"
    (tmp_path / "explorer.toml").write_text(saved["toml"], encoding="utf-8")
    run = Simulation(str(tmp_path / "explorer.toml"), seed=1).finish()
    assert run.metrics["queue.modem>server.max_packets"] == 50

    rows = list(csv.DictReader(io.StringIO(saved["csv"])))
    assert max(float(row["value"]) for row in rows if row["panel"] == "queue") == 50
    assert {row["panel"] for row in rows} == {"queue", "rtt", "cwnd", "goodput"}
    picture = ElementTree.fromstring(saved["svg"])
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(picture.findall(".//{http://www.w3.org/2000/svg}path")) >= 4

    home.page.locator("#menu").evaluate("menu => menu.open = true")
    with home.page.expect_download() as download:
        home.page.click("#save-gif")
    with Image.open(download.value.path()) as animation:
        assert (animation.format, animation.info["loop"], animation.info["duration"]) == ("GIF", 0, 80)
        frames = [frame.convert("RGB").tobytes() for frame in ImageSequence.Iterator(animation)]
    assert len(frames) == 50
    assert len(set(frames)) == 50, "something moves between any two frames"

    home.page.locator("#menu").evaluate("menu => menu.open = true")
    home.page.click("#copy-kernel")
    assert home.page.locator("#command").inner_text() == "bufferscope run explorer.toml --engine guest"
    home.page.click("#copy-sim")
    _, *command = shlex.split(home.page.locator("#command").inner_text())
    monkeypatch.chdir(tmp_path)
    assert cli(*command, "--set", "duration=3s", "--no-report").status == 0


def test_the_editor_and_the_controls_are_in_step(home: Explorer) -> None:
    home.page.locator("#editor").evaluate("editor => editor.open = true")
    text = home.page.locator("#text")
    home.slide("rate", 5e6)
    assert "5mbit" in text.input_value()
    written = text.input_value()
    text.fill(written.replace('qdisc = "pfifo", limit = "200p"', 'qdisc = "pie"'))
    home.page.locator('[data-control="discipline"] option:checked', has_text="PIE").wait_for(state="attached")
    home.settle()
    assert home.state["preset"] is None
    text.fill(written.replace('rate = "300mbit"', 'rate = "fast"'))
    home.page.locator("#problem", has_text="link.wifi.rate").wait_for()
    marked = int(re.sub(r"\D", "", home.page.locator("#lines mark").inner_text()))
    assert 'rate = "fast"' in text.input_value().splitlines()[marked - 1]
    assert home.page.locator("#text").get_attribute("aria-invalid") == "true"


def test_the_editor_completes_keys_and_values(home: Explorer) -> None:
    home.page.locator("#editor").evaluate("editor => editor.open = true")
    text = home.page.locator("#text")
    written = text.input_value()
    text.fill(written.replace('qdisc = "pfifo", limit = "200p"', 'qdisc = "fq_"'))
    caret = text.input_value().index('"fq_') + 4
    text.evaluate("(text, at) => { text.focus(); text.setSelectionRange(at, at); }", caret)
    home.page.keyboard.press("Control+Space")
    home.page.locator("#completions li").first.wait_for()
    assert home.page.locator("#completions li").all_inner_texts() == ['"fq_codel"', '"fq_pie"']
    assert "CoDel" in home.page.locator("#completion-about").inner_text()
    home.page.keyboard.press("ArrowDown")
    home.page.keyboard.press("Enter")
    assert 'qdisc = "fq_pie"' in text.input_value()
    home.page.locator('[data-control="discipline"] option:checked', has_text="FQ-PIE").wait_for(state="attached")


def test_a_tour_is_presented(opened: Opener) -> None:
    stage = opened(width=1600)
    stage.page.click("#start-here")
    stage.page.click("#present")
    stage.settle()
    assert not stage.page.locator("h1").is_visible()
    stage.page.keyboard.press("PageDown")
    stage.settle()
    assert "step 2 of 6" in stage.page.locator("#tour").inner_text()
    stage.page.keyboard.press("PageUp")
    assert "step 1 of 6" in stage.page.locator("#tour").inner_text()
    stage.page.click("#present")
    assert stage.page.locator("h1").is_visible()


def test_the_keyboard_suffices(home: Explorer) -> None:
    home.page.locator('[data-control="rate"] input').focus()
    home.page.keyboard.press("ArrowLeft")
    home.settle()
    assert home.state["sets"]
    home.page.locator('[data-port="router>modem"]').focus()
    home.page.keyboard.press("Enter")
    home.settle()
    assert home.ask("explorer.port()") == "router>modem"
    assert home.ask("document.activeElement.dataset.port") == "router>modem"
    home.page.locator("#time").focus()
    at = home.ask("explorer.time()")
    home.page.keyboard.press("ArrowRight")
    assert home.ask("explorer.time()") > at


def test_nothing_is_wider_than_the_screen(opened: Opener) -> None:
    page = opened(locale="pt")
    page.page.click("#start-here")
    page.page.locator("#editor").evaluate("editor => editor.open = true")
    for width in WIDTHS:
        page.page.set_viewport_size({"width": width, "height": 740})
        page.settle()
        assert page.ask("document.documentElement.scrollWidth") <= width, width
        canvas = page.page.locator("#stage-now canvas").bounding_box()
        assert canvas is not None
        assert canvas["width"] > 0.3 * min(width, 1560)
    page.page.set_viewport_size({"width": WIDTHS[0], "height": 740})
    page.choose("lncc-bql")
    assert page.ask("document.documentElement.scrollWidth") <= WIDTHS[0], "its points have long labels"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(opened: Opener, scheme: str) -> None:
    axe = Path(__file__).parents[2] / "explorer" / "node_modules" / "axe-core" / "axe.min.js"
    page = opened(color_scheme=scheme, bypass_csp=True)
    page.page.click("#start-here")
    page.settle()
    page.page.click("#keep")
    page.page.locator("#editor").evaluate("editor => editor.open = true")
    page.page.locator("#menu").evaluate("menu => menu.open = true")
    page.page.click("#copy-sim")
    page.page.add_script_tag(content=axe.read_text(encoding="utf-8"))
    found = page.page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    assert [(each["id"], [node["target"] for node in each["nodes"]]) for each in found["violations"]] == []


def test_the_lines_are_described_in_every_language(home: Explorer) -> None:
    english = texts("en")
    for file in sorted(HOME.parent.glob("*.toml")):
        assert english[f"preset.{file.stem}.about"] == tomllib.loads(file.read_text())["description"].strip()
    for language in LANGUAGES:
        home.page.select_option("#language", language)
        assert home.page.locator("#description").inner_text() == texts(language)["preset.home.about"].replace(
            "10 Mbit/s", "10\u00a0Mbit/s"
        )
    home.page.select_option("#language", "en")


def test_all_languages_have_the_same_texts(home: Explorer) -> None:
    first = texts("en")
    for language in LANGUAGES:
        own = texts(language)
        assert own.keys() == first.keys()
        assert all(
            sorted(re.findall(r"\{\w+\}", own[key])) == sorted(re.findall(r"\{\w+\}", first[key])) for key in own
        )
        home.page.select_option("#language", language)
        assert home.page.locator("h1").inner_text() == own["title"]
        assert own["control.discipline"] in home.page.locator("#cards").inner_text()
        assert home.page.locator("#play").inner_text() == own["play"]
    home.page.select_option("#language", "en")
