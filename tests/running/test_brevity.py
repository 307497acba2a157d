"""The catalogue in brief: it keeps every point that a statement of a document needs."""

import pytest

from bufferscope.model.experiment import catalogue, load
from bufferscope.running import brevity
from bufferscope.running.brevity import BRIEF, WHOLE, left_out, part_of


def needed(name: str) -> set[int]:
    """The points that the statements of an experiment compare."""
    comparisons = [each for entry in load(name).expectations for each in entry["comparisons"]]
    places = [place for each in comparisons for place in (each, each.get("shown_by")) if place]
    return {number for place in places for number in (place["point"], place["relative_to"]) if number is not None}


def test_only_experiments_of_the_catalogue_are_in_brief() -> None:
    assert set(BRIEF) <= set(catalogue())


@pytest.mark.parametrize("name", BRIEF)
def test_no_statement_loses_a_point(name: str) -> None:
    experiment, part = load(name), BRIEF[name]
    assert needed(name) <= set(part.positions(experiment))
    assert part.repeat is None or part.repeat < experiment.document["repeat"] or part.points != ((),)
    assert left_out(experiment, part), "a part that leaves nothing out is no part"


def test_what_is_left_out_is_said_in_words() -> None:
    ring, homes = load("lncc-ring"), load("dark-netalyzr")
    assert left_out(ring, part_of(ring)) == "24 of its 42 points and 1 of 3 repetitions"
    assert left_out(homes, part_of(homes)) == "4 of its 6 points and 300 of 3\N{NARROW NO-BREAK SPACE}000 members"
    assert left_out(ring, WHOLE) == ""


def test_a_changed_experiment_is_run_whole() -> None:
    assert part_of(load("lncc-ring", ["duration=400s"])) is WHOLE
    assert brevity.part_of(load("ucas-mitigate")) is WHOLE
