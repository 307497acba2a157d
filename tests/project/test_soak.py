"""When scripts/live/soak.py finds that a server's memory grows."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts" / "live"))

import soak


def test_memory_that_each_test_keeps_is_found() -> None:
    # What the server used while each thread had a heap of its own: 30 KiB more after each test.
    assert soak.growth_kib([4600 + 30 * test for test in range(60)]) > soak.MOST_GROWTH_KIB


def test_memory_that_the_first_tests_take_and_later_ones_use_again_is_no_growth() -> None:
    later = [5604, 5612, 5636, 5628, 5644, 5636, 5632, 5640]
    assert soak.growth_kib([4232, 5432, 5444, 5588, *later]) < 16


def test_a_short_soak_says_nothing_about_memory() -> None:
    assert soak.growth_kib([4232, 5432, 5444, 5588, 5604]) == 0
