"""The page explains its points in the sentences of `explain`, each linked to the figure that shows it."""

import re
from pathlib import Path

import pytest
from reports import LABELS, run, stored, worded

from bufferscope.analysis.explanation import explain_run
from bufferscope.figures.source import points
from bufferscope.report.explaining import MOST_POINTS, view


@pytest.fixture(scope="module")
def page(two_queues: Path) -> str:
    return two_queues.read_text(encoding="utf-8")


def section(page: str) -> str:
    return page.partition('-explained">')[2].partition("<h3")[0]


def test_every_point_has_its_verdict(page: str) -> None:
    told = section(page)
    for label in LABELS:
        assert f"<strong>{label}</strong>" in told
    assert told.count("<details") == len(LABELS)


def test_every_link_leads_to_a_figure_on_the_page(page: str) -> None:
    links = re.findall(r'<a class="shown" href="#([^"]+)">', section(page))
    assert links
    assert all(f'id="{anchor}"' in page for anchor in links)


def test_a_figure_that_the_page_does_not_draw_is_not_linked(tmp_path: Path) -> None:
    """The page has only the distribution of round-trip times."""
    told = section(worded(tmp_path, [run("50p")]).read_text(encoding="utf-8"))
    assert set(re.findall(r'href="#([^"]+)">', told)) <= {"two-queues-rtt_cdf"}
    assert len(explain_run(run("50p")).statements) == told.count("<li>") + 1
    assert "<details" not in told


def test_many_points_are_bounded(tmp_path: Path) -> None:
    (point,) = points(stored([run("50p")], tmp_path))
    told = view([point] * (MOST_POINTS + 2), "two-queues", {})
    assert (len(told.points), told.left_out) == (MOST_POINTS, 2)
