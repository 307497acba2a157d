"""The explorer's tours, each walked to its end: every question is answered by moving something, and not before."""

import re
from collections.abc import Callable, Iterator

import pytest
from explorerpage import PAGE, Explorer
from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

Move = Callable[[Explorer], None]


def at(seconds: float) -> Move:
    """Move the time of the picture."""
    return lambda page: page.seek(seconds)


def slide(control: str, value: float) -> Move:
    """Move a slider."""
    return lambda page: page.slide(control, value)


def pick(control: str, value: str) -> Move:
    """Choose a value."""
    return lambda page: page.pick(control, value)


ANSWERS: dict[str, list[list[Move]]] = {
    "bloat": [
        [at(5)],
        [at(6.1)],
        [slide("rate", 25e6)],
        [slide("buffer", 28)],
        [pick("discipline", "fq_codel")],
        [slide("flows:photos", 6)],
    ],
    "size": [
        [slide("buffer", 20)],
        [slide("rtt", 100e6)],
        [slide("buffer", 90)],
        [slide("flows:photos", 10), slide("buffer", 40)],
        [slide("rate", 2e6)],
        [pick("discipline", "codel")],
    ],
    "red": [
        [slide("red-min", 12000)],
        [slide("rate", 1e6)],
        [slide("rate", 100e6)],
        [pick("discipline", "codel"), slide("rate", 1e6)],
    ],
    "fair": [
        [at(9)],
        [pick("discipline", "codel")],
        [slide("flows:photos", 16)],
        [pick("discipline", "fq_codel")],
    ],
    "bbr": [
        [pick("congestion:photos", "bbr")],
        [slide("buffer", 400)],
        [slide("buffer", 8)],
        [pick("discipline", "fq_codel")],
    ],
    "l4s": [[at(12)], [pick("discipline", "dualpi2")], [pick("congestion:cubic", "prague")]],
}


@pytest.fixture(scope="module")
def page(chromium: Browser) -> Iterator[Explorer]:
    """The page; it may not have complained about anything at the end."""
    assert PAGE.exists(), "the explorer is not built; run `make explorer`"
    page = Explorer(chromium)
    yield page
    assert page.close() == []


def test_every_tour_has_answers(page: Explorer) -> None:
    offered = page.page.locator("#tour-choice option").evaluate_all("all => all.map((each) => each.value)")
    assert offered == ["", *ANSWERS]


@pytest.mark.parametrize("tour", ANSWERS)
def test_a_tour_is_answered_by_moving_something(page: Explorer, tour: str) -> None:
    panel = page.page.locator("#tour")
    page.page.select_option("#tour-choice", tour)
    for step, moves in enumerate(ANSWERS[tour], start=1):
        page.settle()
        assert f"step {step} of {len(ANSWERS[tour])}" in panel.inner_text()
        assert panel.locator(".question").get_attribute("data-solved") == "false", "it is not answered before"
        assert page.page.locator(".asked").count() > 0, "what the question is about is shown"
        for move in moves:
            move(page)
        panel.locator(".answer").wait_for()
        panel.locator(".row .primary").click()
    assert panel.is_hidden()
    assert page.refused == ""


def test_a_step_says_what_is_near_and_what_was_before(page: Explorer) -> None:
    panel = page.page.locator("#tour")
    page.page.select_option("#tour-choice", "bloat")
    for _ in range(4):
        page.settle()
        panel.get_by_role("button", name="Skip this question").click()
    page.settle()
    page.pick("discipline", "sfq")
    assert "Choose one of those named" in panel.locator(".near").inner_text()
    assert panel.locator(".answer").count() == 0
    page.pick("discipline", "codel")
    panel.locator(".answer").wait_for()
    assert panel.locator(".near").count() == 0
    now, before = panel.locator(".reading").inner_text().splitlines()
    assert now.startswith("Now: ")
    assert before.startswith("Before: ")
    assert now != before
    page.page.select_option("#tour-choice", "")


def test_a_lost_delay_is_shown_as_a_share(page: Explorer) -> None:
    page.choose("line:home")
    page.pick("discipline", "codel")
    page.slide("rate", 7e5)
    rtt = page.meaning["rtt"]
    share = f"{100 * rtt['lost'] / rtt['count']:.2g}\u00a0%"
    assert rtt["p95"] is None
    assert rtt["lost"] > 0.05 * rtt["count"]
    assert f"{share} lost" in page.page.locator("#numbers").inner_text()
    assert f"{share} of the pings were lost" in page.page.locator(".verdict").inner_text()
    page.choose("line:home")


def test_an_answer_far_from_the_question_is_announced(chromium: Browser) -> None:
    page = Explorer(chromium, width=360, height=740)
    page.page.select_option("#tour-choice", "bloat")
    for _ in range(2):
        page.settle()
        page.page.locator("#tour").get_by_role("button", name="Skip this question").click()
    page.settle()
    page.page.get_by_role("button", name="Show me where").click()
    rate = page.page.locator('[data-control="rate"]')
    assert rate.locator("input").evaluate("input => input === document.activeElement")
    box = rate.bounding_box()
    assert box is not None
    assert 0 < box["y"] < 740
    page.slide("rate", 25e6)
    page.page.locator(".found").click()
    page.page.locator(".found").wait_for(state="detached")
    assert page.page.locator("#tour .answer").is_visible()
    assert page.ask("document.documentElement.scrollWidth") <= 360
    assert page.close() == []


def test_numbers_have_the_decimal_mark_of_the_language(page: Explorer) -> None:
    page.page.select_option("#language", "pt")
    page.settle()
    numbers = page.page.locator("#numbers").inner_text()
    assert re.search(r"\d,\d", numbers)
    assert not re.search(r"\d\.\d", numbers)
    page.page.select_option("#language", "en")
