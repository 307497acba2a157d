"""Measures the explorer in Chromium: its size, its first answer, and how long runs take while they stream in.

`make explorer` must have built it. A run of 60 s has one TCP connection and a ping over a dumbbell, and the packets of
the bottleneck are logged, as on the page. Times are medians.
"""

import gzip
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import which
from typing import Any

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "python" / "bufferscope" / "explorer" / "index.html"
BUILT = ROOT / "explorer" / "build" / "browser.html"
DUMBBELL = ROOT / "scripts" / "agreement" / "dumbbell.toml"
BOTTLENECK = "r1>h2"
RATES_MBIT = (10, 100)
REPEAT = 9
RUNS = """async ([request, times]) => {
    const outcomes = [];
    for (let i = 0; i < times; i++) outcomes.push(await run(client, request));
    return outcomes;
}"""
SUPERSEDED = """async ([long, short, times]) => {
    const waits = [];
    for (let i = 0; i < times; i++) {
        await new Promise((resolve) => {
            let chunks = 0;
            const chunk = () => { if (++chunks === 5 + i) resolve(); };
            client.run(long, { chunk });
        });
        waits.push((await run(client, short)).times_ms[0]);
    }
    return waits;
}"""

SLIDE = """(name) => {
    const slider = document.getElementById(`control-${name}`);
    window.slide = (part) => {
        slider.value = Number(slider.min) + part * (slider.max - slider.min);
        slider.dispatchEvent(new Event("input", { bubbles: true }));
    };
}"""
ANSWERS = """async (times) => {
    const numbers = document.getElementById("numbers");
    const waits = [];
    for (let i = 0; i < times; i++) {
        const [before, began] = [numbers.innerText, performance.now()];
        window.slide(i % 2 ? 0.3 : 0.6);
        while (numbers.innerText === before) {
            if (performance.now() - began > 20000) throw new Error("the slider changes no number");
            await new Promise((resume) => setTimeout(resume, 1));
        }
        waits.push(performance.now() - began);
        await new Promise((resume) => setTimeout(resume, 300));
    }
    return waits;
}"""
FRAMES = """async (count) => {
    const play = document.getElementById("play");
    const { queue, ring, wire } = window.explorer.counts();
    const began = window.explorer.time();
    await new Promise((resume) => setTimeout(resume, 200));
    if (window.explorer.time() === began) play.click();
    const times = [];
    while (times.length < count) times.push(await new Promise(requestAnimationFrame));
    return [queue + ring + wire, (1000 * (count - 1)) / (times.at(-1) - times[0])];
}"""
PLAYED_NS = 15e9
"""When many packets wait in a large buffer of the page's first experiment."""


def main() -> None:
    """Print a line for each quantity."""
    repeat = 2 if sys.argv[1:] == ["--short"] else REPEAT
    page = PAGE.read_bytes()
    print("\nThe explorer, in Chromium")
    print(f"  page: {len(page) / 1e3:.0f} kB, {len(gzip.compress(page, 9)) / 1e3:.0f} kB compressed with gzip")
    with sync_playwright() as playwright:
        program = next(filter(None, map(which, ("chromium", "chromium-browser", "google-chrome"))), None)
        browser = playwright.chromium.launch(executable_path=program, args=["--headless", "--no-sandbox"])
        _starts(browser, repeat)
        tab = browser.new_page()
        tab.goto(BUILT.as_uri())
        for rate in RATES_MBIT:
            outcomes = tab.evaluate(RUNS, [_request(rate), repeat])
            first, *others = ([_after(each, "chunk"), each["times_ms"][-1]] for each in outcomes)
            chunk_ms, done_ms = map(statistics.median, zip(*others, strict=True))
            print(
                f"  60 s of {rate} Mbit/s: {done_ms:.0f} ms (the very first: {first[1]:.0f} ms), "
                f"first samples after {chunk_ms:.0f} ms, {outcomes[0]['bytes'] / 1e6:.1f} MB of columns"
            )
        waits = tab.evaluate(SUPERSEDED, [_request(RATES_MBIT[-1]), _request(1, "1s"), 5 * repeat])
        print(f"  answer to a newer request: {statistics.median(waits):.0f} ms, at most {max(waits):.0f} ms")
        _page(browser, repeat)
        browser.close()


def _page(browser: Browser, repeat: int) -> None:
    """The page itself: how soon it answers a slider, and how smoothly it plays thousands of packets."""
    tab = browser.new_page(viewport={"width": 1280, "height": 800}, bypass_csp=True)
    tab.goto(PAGE.as_uri())
    tab.wait_for_function("window.explorer?.meaning()")
    tab.evaluate(SLIDE, "buffer")
    waits = tab.evaluate(ANSWERS, 2 * repeat)
    print(f"  answer to a slider, 30 s of 10 Mbit/s: {statistics.median(waits):.0f} ms, at most {max(waits):.0f} ms")
    tab.evaluate("window.slide(1)")
    tab.evaluate(SLIDE, "flows_photos")
    tab.evaluate("window.slide(0.7)")
    tab.wait_for_timeout(4000)
    tab.evaluate("at => window.explorer.seek(at)", PLAYED_NS)
    tab.wait_for_timeout(500)
    packets, rate = tab.evaluate(FRAMES, 30 * repeat)
    print(f"  the picture while it plays, with {packets} packets in sight: {rate:.0f} frames a second")
    tab.close()


def _starts(browser: Browser, repeat: int) -> None:
    """From opening the file to the end of the first run, each in a profile of its own."""
    times = []
    for _ in range(repeat):
        context = browser.new_context()
        tab = context.new_page()
        tab.goto(BUILT.as_uri())
        outcome = tab.evaluate("request => run(client, request)", _request(RATES_MBIT[0]))
        times.append([tab.evaluate("performance.now()") - outcome["times_ms"][-1] + _after(outcome, "chunk")])
        context.close()
    print(f"  cold start to the first samples: {statistics.median(each[0] for each in times):.0f} ms")


def _after(outcome: Mapping[str, Any], kind: str) -> float:
    """When the first answer of a kind came, in ms."""
    return float(outcome["times_ms"][outcome["kinds"].index(kind)])


def _request(rate_mbit: int, duration: str = "60s") -> Mapping[str, object]:
    sets: Sequence[str] = [f"duration={duration}", f"link.bottleneck.rate={rate_mbit}mbit"]
    text = DUMBBELL.read_text(encoding="utf-8")
    return {"toml": text, "sets": sets, "changes": [], "seed": 1, "watch": [BOTTLENECK]}


if __name__ == "__main__":
    main()
