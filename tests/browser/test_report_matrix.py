"""A matrix with many columns on a phone: its numbers and labels do not lie on one another."""

import itertools
from pathlib import Path

import pytest
from browsers import draw_all
from matrices import competing
from playwright.sync_api import Browser, ViewportSize
from reports import document, stored

from bufferscope import report

pytestmark = pytest.mark.browser
QUEUES = ("pfifo 1000", "fq_codel")
LOADS = ("1 flow", "8 flows", "64 flows", "a flow and a call", "a UDP flood", "a household")

TEXTS = """(figure) => {
    // Left and right ends of the numbers in the first row, and of upright words.
    const found = [];
    const walk = (group) => {
        for (const mark of group.items) for (const item of mark.items ?? []) {
            if (mark.marktype === "group") walk(item);
            else if (mark.marktype === "text" && (item.datum?.row === "pfifo 1000" || item.angle)) {
                found.push([mark.role, item.bounds.x1, item.bounds.x2]);
            }
        }
    };
    walk(figure.view.scenegraph().root.items[0]);
    return found;
}"""


@pytest.mark.parametrize(("width", "are_narrow"), [(390, True), (1400, False)])
def test_words_of_a_matrix_are_apart(chromium: Browser, tmp_path: Path, width: int, are_narrow: bool) -> None:
    runs = []
    for queue, load, seed in itertools.product(QUEUES, LOADS, (1, 2)):
        made = competing(500_000, 500_000, [1000.0 + seed, 1100.0, 1200.0])
        made.point, made.seed = {"traffic.queue": queue, "traffic.load": load}, seed
        made.id, made.experiment = f"{queue}-{load}-{seed}".replace(" ", "_"), "loads"
        made.document = document(figures=["rtt_matrix"], title="Loads", sweep={})
        runs.append(made)
    path = report.build([stored(runs, tmp_path / "results")], tmp_path / "report")
    page = chromium.new_page(viewport=ViewportSize(width=width, height=800))
    page.goto(path.as_uri())
    draw_all(page)
    texts = page.locator("figure#loads-rtt_matrix").evaluate(TEXTS)
    page.close()
    numbers = sorted((left, right) for role, left, right in texts if role == "mark")
    assert len(numbers) == len(LOADS) * (1 if are_narrow else 2)  # the intervals are below the numbers
    step = 1 if are_narrow else 2
    assert all(one[1] <= other[0] for one, other in zip(numbers, numbers[step:], strict=False))
    assert sum(role == "axis-label" for role, *_ in texts) == (len(LOADS) if are_narrow else 0)
