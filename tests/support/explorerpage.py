"""The explorer's page in a browser: what a reader does with it, and what it then shows."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from browsers import await_frames
from playwright.sync_api import Browser, Page

from bufferscope.base.commit import PACKAGE

PAGE = PACKAGE / "explorer" / "index.html"
"""What `make explorer` builds."""
SOURCES = Path(__file__).parents[2] / "explorer" / "src"
LANGUAGES = ("en", "pt", "zh")
SHORT_MS = 15_000
POSITION = """(slider, value) => {
    const [least, most, end] = [+slider.dataset.least, +slider.dataset.most, +slider.max];
    const at = value === "least" ? 0 : value === "most" ? end : Math.round(end * (slider.dataset.linear === "true"
        ? (value - least) / (most - least)
        : Math.log(value / least) / Math.log(most / least)));
    slider.value = String(at);
    slider.dispatchEvent(new Event("input", { bubbles: true }));
}"""
"""Moves a slider to a value, as a reader does."""
FOLLOW = """fragment => new Promise((seen, failed) => {
    if (location.hash === fragment) failed(new Error("the address has this link already"));
    addEventListener("hashchange", seen, { once: true });
    location.hash = fragment;
})"""
"""Changes the page's address, and waits until the page has noticed."""


class Explorer:
    """The page, opened from disk, without network."""

    def __init__(
        self, browser: Browser, fragment: str = "", *, width: int = 1280, height: int = 900, **options: Any
    ) -> None:
        settings = {"reduced_motion": "reduce", "locale": "en", **options}
        self.context = browser.new_context(viewport={"width": width, "height": height}, offline=True, **settings)
        self.problems: list[str] = []
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(SHORT_MS)
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda asked: self.problems.append(asked.url) if asked.url.startswith("http") else None)
        self.page.goto(PAGE.as_uri() + fragment)
        self.settle()

    def settle(self) -> None:
        """Wait until the run of the present state is over.

        The page's policy forbids what `wait_for_function` does.
        """
        self.page.locator("html:not([data-busy])").wait_for(state="attached")
        await_frames(self.page)

    def ask(self, expression: str) -> Any:
        """A value in the page."""
        return self.page.evaluate(expression)

    @property
    def state(self) -> dict[str, Any]:
        """What is shown: the file, what was set, and the changes during the run."""
        return cast(dict[str, Any], self.ask("explorer.state()"))

    @property
    def meaning(self) -> dict[str, Any]:
        """The numbers of the run. JSON has no infinity."""
        return cast(dict[str, Any], json.loads(self.ask("JSON.stringify(explorer.meaning())")))

    @property
    def refused(self) -> str:
        """Why the present state cannot run; empty if it can."""
        return self.page.locator("#refused").inner_text()

    def controls(self) -> list[str]:
        """The names of the controls."""
        found = self.page.locator("[data-control]").evaluate_all("all => all.map((each) => each.dataset.control)")
        return cast(list[str], found)

    def follow(self, fragment: str) -> None:
        """Open a link of the page in the page."""
        self.page.evaluate(FOLLOW, fragment)
        self.settle()

    def choose(self, preset: str) -> None:
        """Open a preset."""
        self.page.select_option("#preset", preset)
        self.settle()

    def slide(self, control: str, value: float | str) -> None:
        """Move a slider to a value, to its `least` or its `most`."""
        self.page.locator(f'[data-control="{control}"] input').evaluate(POSITION, value)
        self.settle()

    def pick(self, control: str, value: str) -> None:
        """Choose one of the values of a control."""
        self.page.locator(f'[data-control="{control}"] select').select_option(value)
        self.settle()

    def tick(self, control: str) -> None:
        """Turn a control on or off."""
        self.page.locator(f'[data-control="{control}"] input').click()
        self.settle()

    def seek(self, seconds: float) -> None:
        """Move the time of the picture."""
        self.ask(f"explorer.seek({seconds * 1e9})")
        self.settle()

    def press(self, button: str) -> None:
        """Click an element by its name."""
        self.page.click(f"#{button}")
        self.settle()

    def close(self) -> list[str]:
        """Close the page; returns what it complained about."""
        self.context.close()
        return self.problems


def texts(language: str) -> dict[str, str]:
    """The page's words in a language."""
    return cast(dict[str, str], json.loads((SOURCES / "texts" / f"{language}.json").read_text(encoding="utf-8")))


Opener = Callable[..., Explorer]
"""Opens a page, with the arguments of `Explorer` after the browser."""


@contextmanager
def opener(browser: Browser) -> Iterator[Opener]:
    """Opens pages, and closes them at the end; none may have complained about anything."""
    assert PAGE.exists(), "the explorer is not built; run `make explorer`"
    pages: list[Explorer] = []

    def open_page(*arguments: Any, **options: Any) -> Explorer:
        pages.append(Explorer(browser, *arguments, **options))
        return pages[-1]

    yield open_page
    assert [problem for page in pages for problem in page.close()] == []
