"""How much of many runs is done, and how long the rest takes: true where runs cost what was expected, and soon else."""

from collections.abc import Callable
from pathlib import Path

import pytest
from laboratory import write

from bufferscope.cli.work import Work
from bufferscope.engines import engines
from bufferscope.model.experiment import load
from bufferscope.running.cost import expected_s
from bufferscope.running.job import Task
from bufferscope.running.plan import plan

FILE = """
title = "Lab"
duration = "{seconds}s"
[[link]]
name = "line"
ends = ["a", "b"]
rate = "{rate}"
delay = "5ms"
[[traffic]]
name = "bulk"
kind = "tcp"
from = "a"
to = "b"
"""
STEP_S = 0.1
STEP_S = 0.1
Lab = Callable[..., list[Task]]


class Machine:
    """Two processors on which an expected second of an experiment takes as long as `slowness` says."""

    def __init__(self, tasks: list[Task], slowness: dict[str, float], afterwards_s: float = 0.0) -> None:
        self.now_s = 0.0
        self.told: list[tuple[float, float]] = []
        """When something was told, and the time left."""
        self.work = Work(tasks, afterwards_s, lambda: self.now_s)
        self._slowness = slowness
        waiting = [(task, self._takes_s(task)) for task in tasks]
        running: list[tuple[Task, float, float]] = []
        while waiting or running:
            while waiting and len(running) < 2:
                running.append((waiting[0][0], waiting[0][1], waiting.pop(0)[1]))
            self.now_s += STEP_S
            running = [(task, takes_s, left_s - STEP_S) for task, takes_s, left_s in running]
            for task, takes_s, left_s in running:
                self.work.advance(task, int(task.duration_ns * min(1 - left_s / takes_s, 1)))
                if left_s <= 0:
                    self.work.finish(task)
            running = [each for each in running if each[2] > 0]
            if (told_s := self.work.left_s()) is not None:
                self.told.append((self.now_s, told_s))
        self.end_s = self.now_s

    def _takes_s(self, task: Task) -> float:
        return expected_s(task) * self._slowness[task.experiment.name]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    def tasks(name: str, seconds: int, rate: str, repeat: int) -> list[Task]:
        file = write(tmp_path, FILE.format(seconds=seconds, rate=rate), f"{name}.toml")
        return plan(load(file), engines("sim"), tmp_path, repeat=repeat)

    return tasks


def test_runs_that_cost_what_is_expected_are_told_right_from_the_start(lab: Lab) -> None:
    machine = Machine([*lab("many", 100, "10mbit", 20), *lab("few", 1000, "50mbit", 4)], {"many": 3.0, "few": 3.0})
    assert machine.end_s > 10
    for now_s, left_s in machine.told:
        if now_s > 2 and machine.end_s - now_s > 2:
            assert left_s == pytest.approx(machine.end_s - now_s, rel=0.5), now_s


def test_finished_runs_correct_what_was_expected_of_their_experiment(lab: Lab) -> None:
    machine = Machine([*lab("a", 400, "50mbit", 10), *lab("b", 400, "50mbit", 10)], {"a": 1.0, "b": 4.0})
    half = next(number for number, (now_s, _) in enumerate(machine.told) if now_s > machine.end_s / 2)
    for now_s, left_s in machine.told[half:]:
        if machine.end_s - now_s > 2:
            assert left_s == pytest.approx(machine.end_s - now_s, rel=0.5), now_s


def test_what_comes_afterwards_is_part_of_the_time_left(lab: Lab) -> None:
    machine = Machine(lab("lab", 400, "50mbit", 10), {"lab": 2.0}, afterwards_s=30.0)
    assert machine.told[-1][1] == pytest.approx(60, rel=0.3), "the machine takes twice as long as expected"


def test_runs_that_are_stored_together_take_no_time_after_their_last_report(lab: Lab) -> None:
    tasks = lab("lab", 100, "10mbit", 8)
    now_s = 0.0
    work = Work(tasks, clock=lambda: now_s)
    for task in tasks[:4]:  # one after the other, in one thread
        for tenth in range(11):
            now_s += 0.1
            work.advance(task, task.duration_ns * tenth // 10)
    assert work.left_s() == pytest.approx(4.4, rel=0.1)
    for task in tasks[:4]:
        work.finish(task)
    assert work.done_runs == 4
    assert work.share == pytest.approx(0.5)
    assert work.left_s() == pytest.approx(4.4, rel=0.1)


def test_packets_make_the_cost(lab: Lab) -> None:
    slow, fast, long = (expected_s(lab(name, seconds, rate, 1)[0]) for name, seconds, rate in (
        ("slow", 100, "1mbit"), ("fast", 100, "100mbit"), ("long", 1000, "100mbit")
    ))  # fmt: skip
    assert fast > 5 * slow
    assert long == pytest.approx(10 * fast, rel=0.1)
