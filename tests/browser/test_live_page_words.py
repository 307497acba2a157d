"""The sentences of the page of `bufferscope serve`, made by its own module in Chromium from verdicts made by hand."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

WEB = Path(__file__).parents[2] / "crates" / "live" / "src" / "server" / "web"
LANGUAGES = ["en", "pt", "zh"]
IMPORTED = """async ([source, language, texts, judged]) => {
  const { Words } = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  return new Words(language, texts).sentences(judged);
}"""
MS = 1_000_000
UPLINK = {"place": "router_uplink", "direction": "up", "link": 2, "address": None}


def phase(kind: str, outcome: str, grade: str | None = None, where: list[dict[str, Any]] | None = None) -> Any:
    """A phase whose delay rises by 150 ms if it has a queue."""
    added_ns = 150 * MS if outcome == "queue" else 0
    spread = {"count": 400, "lost": 0, "p50_ns": 20 * MS + added_ns, "p95_ns": 20 * MS + added_ns}
    return {
        "kind": kind,
        "outcome": {"kind": outcome},
        "grade": grade,
        "numbers": {"loaded": spread, "added": {"p95_ns": added_ns}, "directions": []},
        "where": where or [],
    }


def queue(*locations: dict[str, Any]) -> list[dict[str, Any]]:
    text = "in a queue" if locations else "cannot tell where"
    return [{"direction": "up", "answer": {"text": text, "locations": list(locations)}}]


def said(chromium: "Browser", language: str, phases: list[Any], limited: dict[str, str]) -> tuple[str, dict[str, str]]:
    """The sentences of these phases, of which the browser limited some, and the texts from which they are made."""
    texts = json.loads((WEB / "texts" / f"{language}.json").read_text(encoding="utf-8"))
    verdict = {"sentences": ["the server's"], "idle": {"rtt": {"p50_ns": 20 * MS}}, "phases": phases}
    browser = [{"phase": each["kind"], "bottleneck": limited.get(each["kind"])} for each in phases]
    source = (WEB / "page" / "words.js").read_text(encoding="utf-8")
    page = chromium.new_page()
    found = page.evaluate(IMPORTED, [source, language, texts, {"browser": browser, "events": [{"verdict": verdict}]}])
    page.close()
    return " ".join(cast(list[str], found)), texts


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_queue_of_one_phase_is_named_though_the_browser_limited_another(chromium: "Browser", language: str) -> None:
    phases = [phase("download", "cannot_tell"), phase("upload", "queue", "C", queue(UPLINK))]
    told, texts = said(chromium, language, phases, {"download": "slow"})
    assert texts["browser_slow"].format(phase=texts["download"]) in told
    assert texts["wait_up"].format(place=texts["queue_router_uplink"]) in told
    assert told.endswith(f"{texts['cure_shaper']} {texts['cure_browser']}")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_queue_whose_place_is_not_known_is_told_too(chromium: "Browser", language: str) -> None:
    phases = [phase("download", "cannot_tell"), phase("upload", "queue", "C", queue())]
    told, texts = said(chromium, language, phases, {"download": "late"})
    assert f"{texts['browser_late'].format(phase=texts['download'])} {texts['place_queue']}" in told
    assert told.endswith(f"{texts['cure_wired']} {texts['cure_browser']}")


@pytest.mark.parametrize(("outcome", "grade"), [("clean", "A+"), ("queue", "A")])
def test_without_a_long_queue_only_the_browser_is_to_be_changed(chromium: "Browser", outcome: str, grade: str) -> None:
    phases = [phase("download", "not_filled"), phase("upload", outcome, grade, queue(UPLINK))]
    told, texts = said(chromium, "en", phases, {"download": "reading"})
    assert texts["browser_reading"].format(phase="download") in told
    assert told.endswith(texts["cure_browser"])
    assert texts["cure_shaper"] not in told
    assert texts["cure_short"] not in told


def test_a_queue_of_the_phase_that_the_browser_limited_is_not_told(chromium: "Browser") -> None:
    phases = [phase("download", "clean", "A+"), phase("upload", "queue", "C", queue(UPLINK))]
    told, texts = said(chromium, "en", phases, {"upload": "slow"})
    assert texts["queue_router_uplink"] not in told
    assert told.endswith(texts["cure_browser"])


def test_if_the_browser_limits_no_phase_the_servers_sentences_are_told(chromium: "Browser") -> None:
    told, _ = said(chromium, "en", [phase("upload", "queue", "C", queue(UPLINK))], {})
    assert told == "the server's"
