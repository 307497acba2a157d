"""`bufferscope reproduce`: simulator and kernel side by side, points that an engine cannot run, and going on."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from laboratory import SMALL, SWEEP, Answer, write

from bufferscope.base.errors import EngineError
from bufferscope.engines import REGISTRY, Engine
from bufferscope.engines.outcome import Outcome
from bufferscope.engines.sim import engine as sim
from bufferscope.model.experiment import Point

Cli = Callable[..., Answer]

LIMIT = "link.line.queue.limit"
EXPECT = """
[[expect]]
metric = "rtt.max_ms"
says = "longer than the path"
figure = "figure 7"
band = [10, inf]
"""


@dataclass
class Kernel:
    """Stands for the guest: the simulator with other seeds."""

    refuses: str = ""
    """The queue's limit that it refuses."""
    fails: str = ""
    """The queue's limit at which it fails."""
    ran: list[str] = field(default_factory=list)
    """The limits that it was asked to run."""

    def run(self, point: Point, seed: int, directory: Path, progress: Callable[[int, int], bool]) -> Outcome:
        limit = point.values.get(LIMIT, "")
        self.ran.append(limit)
        if limit and limit == self.fails:
            raise EngineError("the machine stopped")
        return sim.run(point, seed + 1000, directory, progress)

    def refusals(self, points: Sequence[Point]) -> list[str | None]:
        return ["too large for it" if point.values.get(LIMIT) == self.refuses else None for point in points]


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel()
    engine = Engine(
        "guest",
        "a stand-in",
        made.run,
        label="Real kernel",
        refusals=made.refusals,
        identity=lambda: "same",
        runs_on="the stand-in's kernel",
    )
    monkeypatch.setitem(REGISTRY, "guest", engine)
    monkeypatch.setattr("bufferscope.running.reproduction.lacking", lambda _engine, _kinds: {})
    return made


@pytest.mark.usefixtures("kernel")
def test_the_stored_runs_of_a_kernel_are_shown_beside_the_simulator(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, 'document = "A lab"\n' + SMALL + EXPECT)
    alone = cli("reproduce", "lab.toml")
    assert alone.status == 0
    assert "A real kernel has not been run. To run it: bufferscope reproduce --engine guest" in alone.out
    assert cli("reproduce", "lab.toml", "--engine", "guest", "--quiet").status == 0
    both = cli("reproduce", "lab.toml")
    assert "has not been run" not in both.out
    for words in ("A lab: what it says", "Simulator", "Real kernel", "figure 7: rtt.max_ms"):
        assert words in both.out, words
    document = json.loads(cli("reproduce", "lab.toml", "--json").out)
    judged = document["experiments"][0]["expectations"]
    assert [each["engine"] for each in judged] == ["sim", "guest"]
    assert judged[0]["measured"] != judged[1]["measured"]
    assert document["left_out"] == []
    page = Path("report/index.html").read_text(encoding="utf-8")
    assert page.count('data-label="Real kernel"') == page.count('data-label="Simulator"') == 1


def test_a_point_that_an_engine_refuses_is_left_out_and_told(cli: Cli, tmp_path: Path, kernel: Kernel) -> None:
    write(tmp_path, SMALL + SWEEP + EXPECT)
    kernel.refuses = "40p"
    answer = cli("reproduce", "lab.toml", "--engine", "guest")
    assert answer.status == 0
    assert sorted(kernel.ran) == ["10p", "20p"], "in any order: two run at a time"
    assert f"Not run on guest: lab ({LIMIT} = 40p): too large for it" in " ".join(answer.out.split())
    kernel.refuses = ""
    write(tmp_path, SMALL + f'[sweep]\n"{LIMIT}" = ["40p"]\n')
    kernel.refuses = "40p"
    nothing = cli("reproduce", "lab.toml", "--engine", "guest")
    assert (nothing.status, "too large for it" in nothing.err) == (1, True)


def test_a_failure_is_told_at_the_end_and_the_next_time_goes_on_there(cli: Cli, tmp_path: Path, kernel: Kernel) -> None:
    write(tmp_path, SMALL + SWEEP + EXPECT)
    kernel.fails = "20p"
    answer = cli("reproduce", "lab.toml", "--engine", "guest", "--jobs", "1")
    assert answer.status == 1
    assert "Failed on guest" in answer.out
    assert "the machine stopped" in answer.out
    assert Path("report/index.html").is_file()
    kernel.ran.clear()
    kernel.fails = ""
    assert cli("reproduce", "lab.toml", "--engine", "guest").status == 0
    assert kernel.ran == ["20p"]
    kernel.ran.clear()
    assert cli("reproduce", "lab.toml", "--engine", "guest", "--no-reuse", "--jobs", "1").status == 0
    assert kernel.ran == ["10p", "20p", "40p"]


def test_without_a_page_nothing_is_drawn(cli: Callable[..., Answer], tmp_path: Path) -> None:
    answer = cli("reproduce", "ucas-reproduce", "--no-report", "--json")
    assert answer.status == 0, answer.err
    assert "report" not in json.loads(answer.out)
    assert not (tmp_path / "report").exists()
    refused = cli("reproduce", "ucas-reproduce", "--no-report", "--report", "there")
    assert "--no-report and --report exclude one another" in refused.err
