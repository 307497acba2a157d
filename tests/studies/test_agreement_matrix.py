"""`make agreement`: the matrix is run, the page shows the results, and the current page fits the current matrix."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import matrix
import write
from bufferscope.engines import REGISTRY, Engine
from bufferscope.engines.guest import extra_modules, kernels
from bufferscope.engines.outcome import Outcome
from bufferscope.engines.sim import engine as sim
from bufferscope.model.experiment import Point, load
from bufferscope.store.metadata import CpuReport
from causes import causes
from making import DOCS
from page import HEADINGS
from write import main

SMALL = """
title = "A small matrix"
page = "page.md"
causes = "causes.toml"
repetitions = 3
most = 3
scenarios = [["pfifo 20", "reno", "2mbit", "40ms", 1, "10s"], ["codel", "cubic", "2mbit", "40ms", 2, "10s"]]
[queues]
"pfifo 20" = '{ qdisc = "pfifo", limit = "20p" }'
"codel" = '{ qdisc = "codel" }'
"""
NAMES = ("pfifo 20, reno, 2 Mbit/s, 40 ms, 1 flow", "codel, cubic, 2 Mbit/s, 40 ms, 2 flows")
CAUSE = '[[cause]]\ntitle = "A longer path"\ntext = "The other engine\'s is longer."\n[cause.differs]\n'
ROW = re.compile(r"^\| ([^|]+) \|" + r" ([^|]*) \|" * len(HEADINGS) + "$", re.MULTILINE)


class Other:
    """The simulator with other seeds, on the same path, on one that is 200 ms longer, or on ever longer ones."""

    def __init__(self, scenarios: Path) -> None:
        self.experiments = [entry.experiment for entry in matrix.read(scenarios).entries]
        self.longer = False
        self.scatters = False
        self.saturated_s = 0.0
        self.runs = 0

    def run(self, point: Point, seed: int, directory: Path, progress: Callable[[int, int], bool]) -> Outcome:
        self.runs += 1
        if self.longer or self.scatters:
            same = next(e for e in self.experiments if e.points[0].scenario == point.scenario)
            delay_ms = 110 if self.longer else 10 * seed
            point = load(matrix.DUMBBELL, [*same.overrides, f"link.access.delay={delay_ms}ms"]).points[0]
        outcome = sim.run(point, seed + 1000, directory, progress)
        cpu: CpuReport = {"busiest": 1, "most": 1, "saturated_s": self.saturated_s}
        return replace(outcome, summary={**outcome.summary, "cpu": cpu})


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Other:
    (tmp_path / "small.toml").write_text(SMALL)
    engine = Other(tmp_path / "small.toml")
    known = Engine("other", "for tests", engine.run, identity=lambda: f"{engine.longer}, {engine.scatters}")
    monkeypatch.setitem(REGISTRY, "other", known)
    return engine


def make(directory: Path, *more: str, causes: str = "") -> int:
    """`make agreement` with the small matrix."""
    (directory / "causes.toml").write_text(causes)
    places = {"--matrix": "small.toml", "--pages": "", "--out": "runs"}
    options = [word for option, name in places.items() for word in (option, str(directory / name))]
    return main([*options, "--reference", "other", *more])


def table(page: str) -> dict[str, tuple[str, ...]]:
    """The rows of the page's table by scenario, without its head."""
    section = page.partition("\n## The table\n")[2].partition("\n## ")[0]
    rows = {row[0]: row[1:] for row in ROW.findall(section)}
    del rows["scenario"]
    return rows


def test_equal_engines_need_no_causes_and_runs_are_not_made_again(other: Other, tmp_path: Path) -> None:
    assert make(tmp_path) == 0
    page = (tmp_path / "page.md").read_text()
    assert list(table(page)) == list(NAMES)
    assert "Not yet explained" not in page
    assert "with different seeds, 3 on each engine" in page
    assert other.runs == 6
    assert make(tmp_path) == 0
    assert other.runs == 6
    assert (tmp_path / "page.md").read_text() == page


def test_runs_of_the_reference_are_kept_whichever_build_made_them(other: Other, tmp_path: Path) -> None:
    assert make(tmp_path) == 0
    rows = table((tmp_path / "page.md").read_text())
    other.longer = True
    assert make(tmp_path, "--keep-reference") == 0
    assert other.runs == 6
    page = (tmp_path / "page.md").read_text()
    assert table(page) == rows
    assert "The kernel's runs are stored ones" in page


def test_what_differs_is_bold_and_needs_a_cause(
    other: Other, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other.longer = True
    assert make(tmp_path) == 1
    assert f"No cause in causes.toml: {NAMES[0]}: rtt.p50_ms" in capsys.readouterr().err
    page = (tmp_path / "page.md").read_text()
    assert all(cells[0].startswith("**") for cells in table(page).values())
    missed = re.findall(r"^- (.+): `(.+)` ", page.partition("### Not yet explained")[2], re.MULTILINE)
    assert {(name, "rtt.p50_ms") for name in NAMES} <= set(missed)
    differs = "".join(f'"{name}" = {[metric for place, metric in missed if place == name]}\n' for name in NAMES)
    assert make(tmp_path, causes=CAUSE + differs) == 0
    assert "### A longer path" in (tmp_path / "page.md").read_text()


def test_runs_with_a_saturated_processor_are_not_compared(other: Other, tmp_path: Path) -> None:
    """The runs have 10 s."""
    other.saturated_s, other.longer = 0.11, True
    assert make(tmp_path) == 0
    page = (tmp_path / "page.md").read_text()
    assert not table(page)
    assert "2 more scenarios were not compared" in page
    listed = re.findall(r"^- (.+): 1 % of the time$", page.partition("## Not compared")[2], re.MULTILINE)
    assert listed == list(NAMES), "in the order of the matrix"


def test_a_moment_of_saturation_changes_nothing(other: Other, tmp_path: Path) -> None:
    other.saturated_s = 0.1
    assert make(tmp_path) == 0
    page = (tmp_path / "page.md").read_text()
    assert list(table(page)) == list(NAMES)
    assert "Not compared" not in page


def test_what_scatters_is_told_apart_and_needs_no_cause(
    other: Other, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other.scatters = True
    make(tmp_path)
    assert "rtt.p50_ms" not in capsys.readouterr().err
    page = (tmp_path / "page.md").read_text()
    # Paths of 40, 60 and 80 ms against 40: the differences exceed the tolerance, but scatter as widely.
    assert all(re.fullmatch(r"\*[^*].*[^*]\*", cells[0]) for cells in table(page).values())
    assert "### Within the scatter of few repetitions" in page


def test_what_scatters_is_repeated_more_often(other: Other, tmp_path: Path) -> None:
    other.scatters = True
    scenarios = tmp_path / "small.toml"
    scenarios.write_text(SMALL.replace("most = 3", "most = 4"))
    make(tmp_path)
    # A path that is longer with each seed scatters ever more.
    assert other.runs == 2 * 4
    assert "with different seeds, 4 on each engine" in (tmp_path / "page.md").read_text()


def test_a_cause_of_nothing_is_told(other: Other, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert make(tmp_path, causes=f'{CAUSE}"{NAMES[0]}" = ["goodput.total_mbit"]\n') == 1
    assert f"No difference for the cause in causes.toml: {NAMES[0]}: goodput.total_mbit" in capsys.readouterr().err


@pytest.mark.usefixtures("other")
def test_a_part_of_the_matrix_is_printed_and_writes_no_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert make(tmp_path, "--only", "codel") == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == NAMES[1]
    metric = printed[1].replace("\N{NO-BREAK SPACE}", " ")
    assert re.fullmatch(r"    rtt\.p50_ms: (59|60)(\.\d)? / (59|60)(\.\d)? \(.*\)", metric)
    assert not (tmp_path / "page.md").exists()
    assert make(tmp_path, "--only", "cdel") == 1
    assert "no scenario has 'cdel' in its name" in capsys.readouterr().err


@pytest.mark.usefixtures("other")
def test_a_part_of_the_matrix_may_have_other_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert make(tmp_path, "--only", "codel", "--set", "link.access.delay=110ms") == 0
    assert "    rtt.p50_ms: 25" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        make(tmp_path, "--set", "link.access.delay=110ms")
    assert "--set needs --only" in capsys.readouterr().err


@pytest.mark.usefixtures("other")
@pytest.mark.parametrize("place", ['"no such scenario" = ["rtt.p50_ms"]', f'"{NAMES[0]}" = ["rtt.mean_ms"]'])
def test_a_cause_of_what_there_is_not_is_refused(
    tmp_path: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert make(tmp_path, causes=f"{CAUSE}{place}\n") == 1
    assert "causes.toml: A longer path: there is no rtt." in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.fixture
def no_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of guests, and where runs would be."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "runs"


MODULE_AND_KERNEL = ("Linux 7.3", "dualpi2")
NEEDS_MODULE = (
    "Skipped: agreement-dualpi2.md takes a guest with sch_dualpi2: "
    "bufferscope guest build --kernel 7.3 --module dualpi2\n"
)


def test_a_matrix_whose_module_was_not_built_is_skipped(no_module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--matrix", str(matrix.DUALPI2), "--out", str(no_module), "--pages", str(no_module.parent)]) == 1
    assert capsys.readouterr().err == NEEDS_MODULE
    assert not no_module.exists()
    assert not (no_module.parent / "agreement-dualpi2.md").exists()


def test_the_other_matrices_are_run_without_the_module(
    no_module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "causes.toml").write_text("")
    monkeypatch.setattr(matrix, "FILES", (tmp_path / "small.toml", matrix.DUALPI2))
    places = ["--out", str(no_module), "--pages", str(tmp_path)]
    assert main([*places, "--engine", "guest", "--reference", "sim", "--only", "no such scenario"]) == 1
    assert "no scenario has" in capsys.readouterr().err
    carried_out: list[str] = []

    def carry_out(whole: matrix.Matrix, _: object) -> int:
        carried_out.append(whole.page)
        return 0

    monkeypatch.setattr(write, "_carry_out", carry_out)
    assert main(places) == 0
    assert (carried_out, capsys.readouterr().err) == (["page.md"], NEEDS_MODULE)
    monkeypatch.setattr(kernels, "matching", lambda wanted, _: f"Linux {wanted}")
    monkeypatch.setattr(extra_modules, "has", lambda kernel, module: (kernel, module.name) == MODULE_AND_KERNEL)
    assert main(places) == 0
    assert carried_out == ["page.md", "page.md", "agreement-dualpi2.md"]


def test_every_scenario_of_a_module_runs_on_its_kernel() -> None:
    whole = matrix.read(matrix.DUALPI2)
    assert whole.module is not None
    assert whole.module.module == "sch_dualpi2"
    assert {entry.kernel for entry in whole.entries} == {whole.kernel} == {"7.3"}
    assert {entry.kernel for entry in matrix.read(matrix.DEVICES).entries} == {None, "6.1", "6.12"}


def test_every_page_is_of_the_matrix_at_hand() -> None:
    wholes = [matrix.read(file) for file in matrix.FILES]
    every = [scenario for whole in wholes for scenario in whole.scenarios]
    assert len(every) == len(set(every)) >= 160
    for whole in wholes:
        rows = table((DOCS / whole.page).read_text(encoding="utf-8"))
        assert list(rows) == whole.scenarios, f"docs/{whole.page} is out of date: `make agreement` writes it"
        assert all(cell for cells in rows.values() for cell in cells[:3])
        causes(whole)
