"""The commands that `bufferscope fix` prints, typed in a guest whose kernel has cake."""

import os
from pathlib import Path

import pytest

import cured
from predictions import measure

IS_WHOLE = "WHOLE_CATALOGUE" in os.environ


@pytest.mark.guest
@pytest.mark.skipif(not IS_WHOLE, reason="it takes minutes: make test-slow runs it")
@pytest.mark.parametrize("place", cured.PLACES, ids=lambda place: place.name)
def test_cake_cures_a_queue(place: cured.Place, tmp_path: Path) -> None:
    before = measure("guest", 1, place.phases, cured.FLOWS, cured.experiment(place), tmp_path)
    found = cured.tried(place, 0.03, before, tmp_path)
    assert len(found) == len(place.phases)
    for each in found:
        text, is_cured = cured.row(each)
        assert is_cured, (each.direction, text)
