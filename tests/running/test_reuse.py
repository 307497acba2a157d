"""`--reuse`: a run is repeated only if its result could be different."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from laboratory import DAMAGE, SMALL, SWEEP, Answer, start, write

import bufferscope as bs
from bufferscope.engines import REGISTRY, Engine
from bufferscope.engines.outcome import Outcome
from bufferscope.engines.sim import engine as sim
from bufferscope.model.experiment import Point

Cli = Callable[..., Answer]


class Counting:
    """The simulator, counting its runs, with an identity that a test may change."""

    def __init__(self) -> None:
        self.runs = 0
        self.identity: str | None = "as it is"

    def run(self, point: Point, seed: int, directory: Path, progress: Callable[[int, int], bool]) -> Outcome:
        self.runs += 1
        return sim.run(point, seed, directory, progress)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counting:
    counting = Counting()
    engine = Engine("sim", "counted", counting.run, identity=lambda: counting.identity)
    monkeypatch.setitem(REGISTRY, "sim", engine)
    return counting


def test_what_is_there_is_taken_as_it_is(counted: Counting, tmp_path: Path) -> None:
    lab = write(tmp_path, SMALL + SWEEP)
    first = bs.run(lab, out=tmp_path / "out", repeat=2)
    again = bs.run(lab, out=tmp_path / "out", repeat=3, reuse=True)
    assert counted.runs == 6 + 3, "only the third seed is new"
    assert {run.id for run in first.runs} < {run.id for run in again.runs}
    assert [run.meta["started"] for run in first.runs] == [run.meta["started"] for run in again.runs if run.seed < 3]
    bs.run(lab, out=tmp_path / "out")
    assert counted.runs == 9 + 3, "nothing is reused unasked"


def test_what_could_come_out_otherwise_is_run(counted: Counting, tmp_path: Path) -> None:
    lab = write(tmp_path, SMALL)

    def run(*overrides: str) -> bs.Run:
        return bs.run(lab, list(overrides), out=tmp_path / "out", reuse=True).runs[0]

    run()
    run("link.line.delay=11ms")
    assert counted.runs == 2, "another scenario"
    counted.identity = "mended"
    path = run().path
    assert counted.runs == 3, "another build of the engine"
    (path / "drops.parquet").unlink()
    run()
    assert counted.runs == 4, "a damaged run"
    (path / "run.json").write_text("{")
    run()
    assert counted.runs == 5, "a damaged run"
    run()
    assert counted.runs == 5
    counted.identity = None
    run()
    assert counted.runs == 6, "an engine whose runs never come out alike"


@pytest.mark.parametrize(("damage", "words"), DAMAGE)
def test_a_damaged_run_is_made_again_and_why_is_told(
    damage: Callable[[Path], None], words: str, tmp_path: Path
) -> None:
    lab = write(tmp_path, SMALL)
    (run,) = bs.run(lab, out=tmp_path / "results").runs
    table = run.path / "probes.parquet"
    before = table.read_bytes()
    damage(table)
    with start(["run", "lab.toml", "--quiet", "--reuse"], tmp_path) as again:
        out, err = again.communicate()
        assert (again.returncode, out, err.count("\n")) == (0, "", 1)
        assert err.startswith(f"not reused, but made again: {table.relative_to(tmp_path)}: ")
    assert words in err
    assert table.read_bytes() == before


def test_a_run_whose_tables_have_no_checksums_is_made_again(
    counted: Counting, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lab = write(tmp_path, SMALL)
    (run,) = bs.run(lab, out=tmp_path / "out").runs
    (run.path / "run.json").write_text(json.dumps({key: value for key, value in run.meta.items() if key != "files"}))
    bs.run(lab, out=tmp_path / "out", reuse=True)
    assert counted.runs == 2
    assert "run.json has no checksum of it" in caplog.text


def test_a_reused_run_tells_what_the_file_says_now(counted: Counting, tmp_path: Path) -> None:
    bs.run(write(tmp_path, SMALL), out=tmp_path / "out")
    expect = '[[expect]]\nmetric = "rtt.sent"\nsays = "20"\nband = [20, 20]\n'
    edited = write(tmp_path, SMALL.replace("A small lab", "Renamed") + expect)
    result = bs.run(edited, out=tmp_path / "out", reuse=True)
    assert counted.runs == 1
    assert result.document["title"] == "Renamed" == result.runs[0].meta["title"]
    assert [e.verdict for e in result.expectations] == ["reproduced"]
    assert [entry.name for entry in result.runs[0].path.iterdir() if entry.name.startswith(".")] == []


def test_engines_have_an_identity_unless_they_run_in_real_time(cli: Cli, tmp_path: Path) -> None:
    assert {name: engine.real_time for name, engine in REGISTRY.items() if not engine.observes} == {
        "sim": False,
        "guest": False,
        "host": True,
    }
    assert REGISTRY["host"].identity() is None
    assert REGISTRY["sim"].identity() is not None
    write(tmp_path, SMALL)
    cli("run", "lab.toml", "--quiet")
    (run,) = bs.load(tmp_path / "results" / "lab").runs
    assert run.meta["engine_identity"] == sim.identity()
    before = run.path.stat().st_mtime_ns
    assert cli("run", "lab.toml", "--quiet", "--reuse") == Answer(0, "", "")
    assert run.path.stat().st_mtime_ns == before
