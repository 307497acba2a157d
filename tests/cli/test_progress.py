"""Progress of long jobs: how often it is reported, and in which words."""

import itertools
from pathlib import Path

import pytest
from laboratory import ENDLESS, SMALL, write

from bufferscope.cli.progress import Lines, Pace, shown, steps
from bufferscope.engines import engines
from bufferscope.model.experiment import load
from bufferscope.running.job import Task
from bufferscope.running.plan import plan


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def told_at(duration_s: int) -> list[int]:
    """The seconds at which progress is reported of a job that advances evenly and is checked every second."""
    clock = Clock()
    pace = Pace(clock)
    told = []
    for second in range(duration_s):
        clock.now_s = 1000.0 + second
        if pace.due(second / duration_s):
            told.append(second)
    return told


def test_nothing_is_said_of_what_is_soon_over() -> None:
    assert told_at(2) == []


def test_the_first_line_comes_after_two_seconds_and_then_each_tenth_or_when_the_time_has_doubled() -> None:
    assert told_at(40) == [2, 4, 8, 12, 16, 20, 24, 28, 32, 36]
    hours = told_at(36_000)
    assert hours[:5] == [2, 4, 8, 16, 32]
    assert len(hours) < 24
    assert max(b - a for a, b in itertools.pairwise(hours)) <= 3600, "a tenth"


@pytest.fixture
def tasks(tmp_path: Path) -> list[Task]:
    """A run of a second, and one of a day."""
    return plan(load(write(tmp_path, SMALL + ENDLESS)), engines("sim"), tmp_path)


def test_a_long_run_tells_how_far_it_is_and_how_long_it_will_take(
    tasks: list[Task], capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    lines = Lines(tasks, Pace(clock))
    short, long = tasks
    lines.finished(short)
    lines.advanced(long, 0)
    assert capsys.readouterr().err == ""
    clock.now_s += 30
    lines.advanced(long, 86_400_000_000_000 // 4)
    assert capsys.readouterr().err == "25% simulated (1 of 2 runs), about 90 s left\n"
    lines.advanced(long, 86_400_000_000_000 // 3)
    assert capsys.readouterr().err == "", "too soon"
    lines.finished(long)
    assert capsys.readouterr().err == "2 of 2 runs done\n"


def test_steps_are_counted_with_the_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(Pace.__init__, "__defaults__", (clock,))
    with steps("Drawing the figures") as step:
        step(0, 4)
        clock.now_s += 3
        step(1, 4)
        clock.now_s += 0.5
        step(2, 4)
    assert capsys.readouterr().err == "Drawing the figures\nDrawing the figures: 1 of 4, about 9 s left\n"
    with steps("Computing the metrics", announced=False) as step:
        step(0, 4)
    with steps("Drawing the figures", silent=True) as step:
        step(1, 4)
    assert capsys.readouterr().err == ""


def test_silence_is_silent(tasks: list[Task], capsys: pytest.CaptureFixture[str]) -> None:
    with shown(tasks, silent=True) as watcher:
        watcher.advanced(tasks[1], 5)
        watcher.finished(tasks[0])
    assert capsys.readouterr().err == ""
