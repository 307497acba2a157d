"""What is derived from a stored run is derived once, and no longer kept than the run."""

import gc
import weakref
from pathlib import Path

import pytest
from reports import LABELS, run, stored

from bufferscope.metrics import kept, queues
from bufferscope.metrics.records import RunRecords


def test_a_stored_run_is_asked_once(tmp_path: Path) -> None:
    asked: list[str] = []

    @kept.once
    def derived(run: RunRecords) -> str:
        asked.append(run.id)
        return f"of {run.id}"

    first, second = stored([run(label) for label in LABELS], tmp_path).runs
    assert [derived(first), derived(second), derived(first)] == [f"of {each.id}" for each in (first, second, first)]
    assert asked == [first.id, second.id]
    other, _ = stored([run(label) for label in LABELS], tmp_path / "again").runs
    derived(other)
    assert asked[2:] == [other.id], "another run with the same name has its own records"


def test_a_run_whose_records_may_change_is_asked_again() -> None:
    made = run("50p")
    counted = kept.once(lambda each: each.queues.height)
    before = counted(made)
    made.rows["queues"] = made.rows["queues"][:7]
    made.__dict__.pop("queues", None)
    assert (before, counted(made)) == (201, 7)


def test_nothing_outlives_its_run(tmp_path: Path) -> None:
    derive = kept.once(lambda each: [each.id])
    result = stored([run("50p")], tmp_path)
    derive(result.runs[0])
    gone = weakref.ref(result.runs[0])
    del result
    gc.collect()
    assert gone() is None


def test_the_delays_of_runs_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = stored([run(label) for label in LABELS], tmp_path)
    before = list(queues.mean_delays_s(result.runs))
    monkeypatch.setattr(queues, "_mean_delays", None)
    assert list(queues.mean_delays_s(result.runs)) == before
    assert list(queues.mean_delays_s(result.runs[1:])) == before[1:]
