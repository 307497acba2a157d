"""`make explaining`: planted causes, whether they act, and the page; a few of its seeds."""

import random

import pytest

import explained
from acting import acting
from kinds import KINDS, planted
from planting import LINKS

SOME = range(2000, 2000 + len(KINDS))
"""One seed for each cause; neither those of the page nor those on which thresholds were chosen."""


@pytest.mark.parametrize("seed", SOME)
def test_the_planted_cause_is_named_where_it_is(seed: int) -> None:
    judged = explained.judge(seed)
    assert judged.is_hit, judged


@pytest.mark.parametrize("cause", KINDS)
def test_equal_seeds_plant_the_same(cause: str) -> None:
    first, second = (planted(cause, random.Random(5)) for _ in range(2))
    assert first == second
    assert first.document != planted(cause, random.Random(6)).document


def test_a_queue_is_planted_here_and_there() -> None:
    found = {planted("queue", random.Random(seed)).port for seed in range(60)}
    assert len(found) == 2 * len(LINKS)


def test_a_cause_that_does_not_act_is_drawn_again() -> None:
    """Some seed needs more than one draw, or the criterion would refuse nothing."""
    assert any(acting(seed).draws > 1 for seed in range(3001, 3001 + 7 * 6, 7))


def judged(planted: str, named: str) -> explained.Judged:
    return explained.Judged(1, planted, planted, "", "words", "outcome", 1, named, "", planted == named, "verdict")


def test_one_cause_invented_on_a_healthy_run_fails() -> None:
    assert explained.passes([judged("none", "none")] * 99 + [judged("queue", "none")])
    assert not explained.passes([judged("none", "none")] * 99 + [judged("none", "queue")])
    assert not explained.passes([judged("none", "none")] * 90 + [judged("queue", "none")] * 10)


def test_the_page_counts_confusions() -> None:
    rows = [judged(kind, kind) for kind in KINDS]
    text = explained.page([*rows, judged("loss", "queue")])
    assert "in 12 of 13 scenarios (92.3 %)" in text
    assert "| **loss** | 1 |" in text
    assert "1 of 2 |" in text
