"""The explorer's simulator in a browser: its runs are the native one's, and a newer request ends an older one."""

from collections.abc import Iterator
from typing import Any

import explorers
import pytest
from laboratory import ROUTED
from playwright.sync_api import Browser, Page

from bufferscope.model.experiment import Experiment, load

pytestmark = pytest.mark.browser

LONG = ["duration=36000s", "link.line.rate=100mbit"]
"""A run that takes minutes."""
PATIENCE_MS = 60_000


@pytest.fixture(scope="module")
def page(chromium: Browser) -> Iterator[Page]:
    """A page with the client, opened from a file. It may not write to the console."""
    page = chromium.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((explorers.BUILT / "browser.html").as_uri())
    yield page
    assert said == []
    page.close()


def _lab(*overrides: str) -> Experiment:
    return Experiment("lab", ROUTED.encode(), "lab.toml", overrides)


def _run(page: Page, request: explorers.Request) -> dict[str, Any]:
    outcome: dict[str, Any] = page.evaluate("request => run(client, request)", request)
    return outcome


def test_runs_are_those_of_the_native_simulator(page: Page) -> None:
    runs = list(explorers.every_run())
    answers = []
    for experiment, index in runs:
        outcome = _run(page, explorers.request(experiment, index, seed=3))
        kinds, answer = outcome["kinds"], outcome["answer"]
        if answer["kind"] == "refused":
            answers.append({"refused": answer})
            continue
        assert (kinds[0], set(kinds[1:-1]), answer["kind"]) == ("opened", {"chunk"}, "done"), (experiment.name, index)
        assert outcome["rows"]
        answers.append({"summary": answer["summary"]})
    explorers.check_runs(runs, answers, seed=3)


def test_a_log_of_packets_changes_no_run(page: Page) -> None:
    outcome = _run(page, explorers.request(_lab(), seed=3) | {"watch": ["r1>h2"]})
    assert explorers.exact(outcome["answer"]["summary"]) == explorers.native(_lab().points[0], 3)


def test_a_newer_request_ends_an_older_one(page: Page) -> None:
    long, short = explorers.request(_lab(*LONG)), explorers.request(_lab())
    kinds = page.evaluate(
        """async ([long, short, patience]) => {
            const kinds = [];
            const note = (answer) => kinds.push(answer.kind);
            const newer = new Promise((resolve) => {
                let chunks = 0;
                const chunk = () => { if (++chunks === 3) resolve(run(client, short)); };
                client.run(long, { chunk, done: note, refused: note, failed: note });
            });
            const late = new Promise((resolve) => setTimeout(resolve, patience, { answer: { kind: "late" } }));
            note((await Promise.race([newer, late])).answer);
            return kinds;
        }""",
        [long, short, PATIENCE_MS],
    )
    assert kinds == ["done"]


def test_checks_and_the_schema_do_not_disturb_a_run(page: Page) -> None:
    broken = explorers.request(_lab()) | {"sets": ["link.line.rate=0mbit"]}
    long = explorers.request(_lab("duration=20s"))
    answers = page.evaluate(
        """async ([long, broken]) => {
            const done = run(client, long);
            const [refused, opened, schema] = await Promise.all(
                [client.check(broken), client.check(long), client.schema()]);
            return [refused.kind, opened.kind, schema.properties.sample.default, (await done).answer.kind];
        }""",
        [long, broken],
    )
    assert answers == ["refused", "opened", "10ms", "done"]


def test_a_worker_that_was_ended_is_replaced(page: Page) -> None:
    answers = page.evaluate(
        """async ([long, short]) => {
            const other = new Client();
            other.run(long, { done: () => { throw new Error("it was ended"); } });
            const check = other.check(long).catch((error) => error.message);
            other.terminate();
            const ended = await check;
            const outcome = await run(other, short);
            other.terminate();
            return [ended, outcome.answer.kind];
        }""",
        [explorers.request(_lab(*LONG)), explorers.request(_lab())],
    )
    assert answers == ["the simulator was stopped", "done"]


def test_a_run_of_the_catalogue_has_few_points_and_bounded_columns(page: Page) -> None:
    outcome = _run(page, explorers.request(load("ucas-reproduce")) | {"watch": ["r1>h2", "h2>r1"]})
    sampled = {name: rows for name, rows in outcome["rows"].items() if name.startswith(("ports", "flows"))}
    assert sampled
    assert max(sampled.values()) <= 2000
    assert outcome["bytes"] < 40 << 20
