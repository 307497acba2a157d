"""Runs stored in partitions have the same records as runs in directories of their own, and are stored as safely."""

import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest
from handmade import SCHEMAS
from laboratory import DAMAGE, MORE, SMALL, SWEEP, TABLES, Answer, files, start, write
from polars.testing import assert_frame_equal

import bufferscope as bs
from bufferscope.base.errors import EngineError
from bufferscope.cli import overview
from bufferscope.cli.documents import result_document
from bufferscope.engines import REGISTRY, engines
from bufferscope.engines.sim import engine as sim
from bufferscope.figures import source
from bufferscope.model.experiment import Point, load
from bufferscope.model.table_names import TableName
from bufferscope.report import build
from bufferscope.running import layout
from bufferscope.running.job import Task
from bufferscope.running.plan import RunsFailedError

Cli = Callable[..., Answer]

SITE = """
[[traffic]]
name = "site"
kind = "web"
from = "h2"
to = "h1"
interval = "300ms"
bytes = "20kb"
"""
SHORT = SMALL.replace('duration = "2s"', 'duration = "500ms"')
"""The tables of a run are a few hundred rows."""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[bs.Result, bs.Result]:
    """The same runs, each in its own directory and in partitions."""
    directory = tmp_path_factory.mktemp("sweep")
    lab = write(directory, SMALL + MORE + SITE + SWEEP)
    single = bs.run(lab, out=directory / "single", repeat=4, layout="single")
    return single, bs.run(lab, out=directory / "sweep", repeat=4, layout="sweep")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of an experiment's runs, in partitions of several runs."""
    directory = tmp_path_factory.mktemp("stored")
    bs.run(write(directory, SHORT), out=directory / "results", repeat=20, layout="sweep")
    return directory / "results" / "lab"


@pytest.fixture
def experiment_dir(stored: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(stored, tmp_path / "results" / "lab"))


def partitions(experiment_dir: Path) -> list[Path]:
    return sorted(experiment_dir.iterdir())


@pytest.mark.parametrize("table", SCHEMAS)
def test_every_table_is_the_same(table: TableName, both: tuple[bs.Result, bs.Result]) -> None:
    single, sweep = both
    assert_frame_equal(sweep.table(table), single.table(table))
    assert_frame_equal(sweep.scan(table).collect(), single.table(table))
    for one, other in zip(single.runs, sweep.runs, strict=True):
        assert_frame_equal(getattr(other, table), getattr(one, table))


def test_every_metric_is_the_same_to_the_last_digit(both: tuple[bs.Result, bs.Result]) -> None:
    single, sweep = both
    assert_frame_equal(sweep.metrics, single.metrics, check_exact=True)
    assert_frame_equal(sweep.metric("rtt.p37_ms"), single.metric("rtt.p37_ms"), check_exact=True)
    for one, other in zip(single.runs, bs.load(sweep.runs[0].experiment_dir).runs, strict=True):
        assert dict(bs.metrics.compute(other)) == dict(bs.metrics.compute(one)) == dict(one.metrics)


def test_all_that_is_known_of_a_run_is_the_same(both: tuple[bs.Result, bs.Result]) -> None:
    single, sweep = both
    apart = ("started", "wall_s", "cpu_s", "files")
    for one, other in zip(single.runs, sweep.runs, strict=True):
        assert one.id == other.id
        assert {k: v for k, v in one.meta.items() if k not in apart} == {
            k: v for k, v in other.meta.items() if k not in apart
        }
    assert [each.verdict for each in single.expectations] == [each.verdict for each in sweep.expectations]


def test_a_sweep_is_a_few_files(both: tuple[bs.Result, bs.Result]) -> None:
    single, sweep = both
    assert len(files(single.runs[0].experiment_dir)) == 12 * (1 + len(TABLES))
    # Partitions of two runs: there are at least six.
    assert len(files(sweep.runs[0].experiment_dir)) == 6 * (1 + len(TABLES))


def test_what_is_loaded_is_what_was_run(both: tuple[bs.Result, bs.Result]) -> None:
    _, sweep = both
    loaded = bs.load(sweep.runs[0].experiment_dir)
    assert [run.id for run in loaded.runs] == [run.id for run in sweep.runs]
    part = bs.load(sweep.runs[0].path.parent)
    assert [run.id for run in part.runs] == [run.id for run in sweep.runs[:2]]
    (alone,) = bs.load(sweep.runs[1].path).runs
    assert_frame_equal(alone.probes, sweep.runs[1].probes)
    assert alone.path == sweep.runs[1].path


def test_a_part_of_a_sweep_is_measured_alone(both: tuple[bs.Result, bs.Result]) -> None:
    single, sweep = both
    chosen = [5, 1, 8]
    expected = bs.metrics.frame([single.runs[number] for number in chosen])
    assert_frame_equal(bs.metrics.frame([bs.load(sweep.runs[n].path).runs[0] for n in chosen]), expected)
    mixed = [single.runs[0], sweep.runs[5], single.runs[5], sweep.runs[4]]
    assert_frame_equal(bs.metrics.frame(mixed), bs.metrics.frame([single.runs[number] for number in (0, 5, 5, 4)]))


def test_measuring_keeps_no_table_in_memory(stored: Path) -> None:
    loaded = bs.load(stored)
    assert loaded.metrics.height
    assert not any(table in vars(run) for run in loaded.runs for table in SCHEMAS)


def test_documents_and_pages_measure_a_sweep_together(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def alone(run: bs.Run) -> bs.metrics.Metrics:
        raise AssertionError(f"{run.id} is measured alone, which reads the tables of all runs beside it")

    monkeypatch.setattr(bs.metrics, "compute", alone)
    loaded = bs.load(stored)
    printed = [run["metrics"] for run in cast(Any, result_document(loaded))["runs"]]
    assert printed == [dict(run.metrics) for run in loaded.runs]
    build([bs.load(stored)], tmp_path / "page")


def test_many_short_runs_are_stored_together_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "LEAST_RUNS", 10)
    lab = write(tmp_path, SHORT)
    assert all(run.partition for run in bs.run(lab, out=tmp_path / "many", repeat=10).runs)
    assert not any(run.partition for run in bs.run(lab, out=tmp_path / "few", repeat=9).runs)
    assert not any(run.partition for run in bs.run(lab, out=tmp_path / "one", repeat=10, layout="single").runs)
    monkeypatch.setattr(layout, "LONGEST_S", 0.4)
    assert not any(run.partition for run in bs.run(lab, out=tmp_path / "long", repeat=10).runs)


def test_a_long_run_of_another_experiment_does_not_part_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "LEAST_RUNS", 10)
    short = load(write(tmp_path, SHORT, "short.toml"))
    long = load(write(tmp_path, SHORT, "long.toml"), ["duration=100s"])
    (simulator,) = engines("sim")
    tasks = [Task(short, 0, seed, simulator, tmp_path) for seed in range(10)]
    tasks.append(Task(long, 0, 1, simulator, tmp_path))
    assert layout.sharing(tasks, "auto") == set(tasks[:10])


def test_a_partition_has_a_limited_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "MOST_S", 1)
    result = bs.run(write(tmp_path, SHORT), out=tmp_path, repeat=20, layout="sweep")
    assert [len(bs.load(part).runs) for part in partitions(tmp_path / "lab")] == [2] * 10
    assert [run.seed for run in result.runs] == list(range(1, 21))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--layout", "heap"], "--layout: found 'heap'; allowed: auto, single, sweep"),
        (
            ["--layout", "sweep", "--engine", "sim", "--engine", "guest"],
            "--layout sweep: only for the engine sim; runs of guest have",
        ),
        (["--layout", "sweep", "--cluster", "local:1"], "--layout sweep: not with --cluster"),
    ],
)
def test_an_impossible_layout_is_refused(words: list[str], message: str, cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, SHORT)
    answer = cli("run", "lab.toml", *words)
    assert (answer.status, answer.out) == (2, "")
    assert message in answer.err
    assert not (tmp_path / "results").exists()


def test_commands_take_a_sweep_as_any_runs(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, SHORT + SWEEP)
    ran = cli("run", "lab.toml", "--layout", "sweep", "--repeat", "2", "--json", "--report", "page")
    assert ran.status == 0
    runs = json.loads(ran.out)["runs"]
    assert len(runs) == 6
    assert "A small lab" in (tmp_path / "page" / "index.html").read_text()
    listed = cli("show", "results/lab", "--json")
    assert [run["path"] for run in json.loads(listed.out)["runs"]] == [run["path"] for run in runs]
    shown = json.loads(cli("show", runs[3]["path"], "--json").out)
    assert shown["metrics"] == runs[3]["metrics"]
    assert cli("compare", "results/lab", "--json").status == 0
    assert cli("export", "results/lab", "--out", "tidy").status == 0
    assert pl.read_csv(tmp_path / "tidy" / "probes.csv")["run"].n_unique() == 6
    printed = cli("run", "lab.toml", "--layout", "sweep", "--no-report").out
    assert "Stored in results/lab/" in printed


class Counting:
    """The simulator, counting its runs; a test may let one seed fail."""

    def __init__(self) -> None:
        self.runs = 0
        self.failing: int | None = None
        self.identity: str | None = "as it is"

    def batch_runner(self, directory: Path) -> sim.SimBatchRunner:
        counting = self

        class Counted(sim.SimBatchRunner):
            def run(self, point: Point, seed: int, progress: Callable[[int, int], bool]) -> Any:
                counting.runs += 1
                if seed == counting.failing:
                    raise EngineError("it fell over")
                return super().run(point, seed, progress)

        return Counted(directory)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counting:
    counting = Counting()
    engine = replace(REGISTRY["sim"], identity=lambda: counting.identity, batch_runner=counting.batch_runner)
    monkeypatch.setitem(REGISTRY, "sim", engine)
    return counting


def run_all(tmp_path: Path, repeat: int = 16, text: str = SHORT, **options: Any) -> bs.Result:
    return bs.run(write(tmp_path, text), out=tmp_path / "results", repeat=repeat, layout="sweep", **options)


def test_stored_runs_are_taken_and_the_others_made(counted: Counting, tmp_path: Path) -> None:
    first = run_all(tmp_path)
    again = run_all(tmp_path, repeat=20, reuse=True)
    assert counted.runs == 16 + 4
    assert [run.id for run in again.runs[:16]] == [run.id for run in first.runs]
    assert [run.seed for run in again.runs] == list(range(1, 21))
    assert [run.seed for run in bs.load(tmp_path / "results" / "lab").runs] == list(range(1, 21))
    counted.identity = "mended"
    run_all(tmp_path, reuse=True)
    assert counted.runs == 20 + 16, "another build of the engine"
    counted.identity = None
    run_all(tmp_path, reuse=True)
    assert counted.runs == 36 + 16, "an engine whose runs never come out alike"


def test_runs_in_directories_of_their_own_are_taken_too(counted: Counting, tmp_path: Path) -> None:
    bs.run(write(tmp_path, SHORT), out=tmp_path / "results", repeat=3, layout="single")
    assert [run.partition is None for run in run_all(tmp_path, repeat=5, reuse=True).runs] == [True] * 3 + [False] * 2
    assert counted.runs == 2


def test_other_words_of_the_file_are_taken_over(counted: Counting, tmp_path: Path) -> None:
    before = run_all(tmp_path)
    again = run_all(tmp_path, text=SHORT.replace("A small lab", "A tiny lab"), reuse=True)
    assert counted.runs == 16
    assert {run.meta["title"] for run in (*again.runs, *bs.load(tmp_path / "results/lab").runs)} == {"A tiny lab"}
    assert_frame_equal(again.probes, before.probes)


def test_of_two_runs_of_one_name_the_last_one_counts(tmp_path: Path) -> None:
    bs.run(write(tmp_path, SHORT), out=tmp_path / "results", repeat=2, layout="single")
    experiment_dir = tmp_path / "results" / "lab"
    for place in partitions(experiment_dir):
        meta = json.loads((place / "run.json").read_text())
        (place / "run.json").write_text(json.dumps(meta | {"started": "2000-01-01T00:00:00+00:00"}))
    run_all(tmp_path, repeat=2)
    assert all(run.partition for run in bs.load(experiment_dir).runs)
    assert len(bs.load(experiment_dir).runs) == 2


def test_a_failed_run_is_left_out_and_told(counted: Counting, tmp_path: Path) -> None:
    counted.failing = 5
    with pytest.raises(RunsFailedError, match=r"seed 5.*it fell over") as caught:
        run_all(tmp_path)
    assert [run.seed for run in caught.value.finished] == [seed for seed in range(1, 17) if seed != 5]
    loaded = bs.load(tmp_path / "results" / "lab")
    assert [run.seed for run in loaded.runs] == [seed for seed in range(1, 17) if seed != 5]
    expected = bs.run(write(tmp_path, SHORT), out=tmp_path / "alone", seed=6, layout="single")
    assert_frame_equal(loaded.runs[4].probes, expected.runs[0].probes)


def test_ctrl_c_keeps_the_complete_partitions_and_a_rerun_goes_on(tmp_path: Path) -> None:
    write(tmp_path, SMALL.replace('"2s"', '"20s"'))
    command = ["run", "lab.toml", "--repeat", "400", "--jobs", "1", "--no-report"]
    with start(command, tmp_path) as process:
        experiment_dir = tmp_path / "results" / "lab"
        try:
            while not experiment_dir.is_dir() or not [
                entry for entry in experiment_dir.iterdir() if not entry.name.startswith(".")
            ]:
                assert process.poll() is None
                os.sched_yield()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
        assert process.returncode == 130
    assert "the finished runs are complete, in results/lab/" in err
    kept = bs.load(experiment_dir).runs
    assert 50 <= len(kept) < 400
    assert not [entry for entry in experiment_dir.iterdir() if entry.name.startswith(".")]
    again = bs.run(tmp_path / "lab.toml", out=tmp_path / "results", repeat=len(kept) + 3, reuse=True, layout="sweep")
    assert [run.meta["started"] for run in again.runs[: len(kept)]] == [run.meta["started"] for run in kept]


@pytest.mark.parametrize(("damage", "words"), DAMAGE)
def test_a_damaged_table_is_told(damage: Callable[[Path], None], words: str, experiment_dir: Path, cli: Cli) -> None:
    table = partitions(experiment_dir)[3] / "probes.parquet"
    damage(table)
    result = bs.load(experiment_dir)
    for name in ("metrics", "probes"):
        with pytest.raises(bs.StoreError, match=rf"probes\.parquet: .*{words}.*: the run is damaged"):
            result.table(name)
    assert result.queues.height
    answer = cli("export", str(experiment_dir), "--out", "tidy")
    assert (answer.status, answer.err.count("\n")) == (2, 1)
    assert words in answer.err


@pytest.mark.parametrize(("damage", "words"), DAMAGE)
def test_the_runs_of_a_damaged_partition_are_made_again(
    damage: Callable[[Path], None],
    words: str,
    counted: Counting,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    run_all(tmp_path)
    damage(partitions(tmp_path / "results" / "lab")[3] / "flows.parquet")
    run_all(tmp_path, reuse=True)
    assert counted.runs == 16 + 2
    assert "not reused, but made again: " in caplog.text
    assert words in caplog.text


def metadata(**changes: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda found: found | changes


def own(number: int, **changes: Any) -> Callable[[dict[str, Any]], Any]:
    def change(found: dict[str, Any]) -> Any:
        found["own"][number] |= changes
        return found

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda found: [], "it has no key `format`"),
        (metadata(format=1), "found format 1"),
        (metadata(names="x"), "names: found 'x'; expected a list"),
        (metadata(names=["a"]), "different names, one for each run"),
        (lambda found: found | {"names": [found["names"][0]] * len(found["names"])}, "different names"),
        (lambda found: found | {"names": ["../up", *found["names"][1:]]}, "names\\[0\\]: found '../up'"),
        (metadata(own=[]), "own: found \\[\\]; expected a list of at least 1"),
        (metadata(own=[1, 2, 3]), "own\\[0\\]: found 1; expected a table"),
        (metadata(common=3), "common: found 3; expected a table"),
        (metadata(files={}), "files.probes: missing"),
        (own(1, seed=-1), "seed: found -1"),
        (own(1, scenario={}), None),
        (own(1, scenario=3), "scenario: found 3; expected a table"),
        (own(1, tables={"probes": 10**9, "flows": 0}), "rows; "),
        (own(1, started="\u0007"), "character U\\+0007"),
    ],
)
def test_whatever_the_metadata_says_is_read_or_refused(
    change: Callable[[dict[str, Any]], Any], words: str | None, experiment_dir: Path
) -> None:
    file = partitions(experiment_dir)[1] / "runs.json"
    file.write_text(json.dumps(change(json.loads(file.read_text()))))

    def read() -> None:
        result = bs.load(experiment_dir)
        assert result.metrics.height
        assert result.probes.height

    if words is None:
        read()
    else:
        with pytest.raises(bs.StoreError, match=words):
            read()


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"format": NaN}', b"[" * 100_000])
def test_a_file_that_is_no_metadata_is_refused(content: bytes, experiment_dir: Path) -> None:
    (partitions(experiment_dir)[0] / "runs.json").write_bytes(content)
    with pytest.raises(bs.StoreError, match=r"runs\.json: not (JSON|written)"):
        bs.load(experiment_dir)


def test_a_run_that_is_not_in_the_partition_is_told(experiment_dir: Path) -> None:
    with pytest.raises(bs.StoreError, match="nobody: no such run; the partition has run-sim-s"):
        bs.load(partitions(experiment_dir)[0] / "nobody")


def test_a_partition_that_was_replaced_since_it_was_loaded_is_told(experiment_dir: Path) -> None:
    result = bs.load(experiment_dir)
    one, other = partitions(experiment_dir)[:2]
    shutil.rmtree(one)
    shutil.copytree(other, one)
    with pytest.raises(bs.StoreError, match="another partition has taken its place since it was loaded"):
        _ = result.probes


def test_more_points_than_can_be_shown_are_refused_by_pages_and_counted_by_tables(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (source, overview):
        monkeypatch.setattr(module, "MOST_POINTS", 2)
    write(tmp_path, SHORT + SWEEP)
    ran = cli("run", "lab.toml", "--layout", "sweep")
    assert ran.status == 0
    assert "Points not shown: 1" in ran.out
    assert "No page is written: it can show 2 points, not 3." in ran.err
    assert not (tmp_path / "report").exists()
    asked = cli("run", "lab.toml", "--reuse", "--report", "page")
    assert (asked.status, asked.err.splitlines()[-1]) == (
        2,
        "bufferscope: page: a page shows at most 2 points, and these runs are of 3",
    )
    with pytest.raises(bs.figures.NoDataError, match="rtt: 3 points are too many to draw; at most 2"):
        bs.figures.rtt(bs.load(tmp_path / "results" / "lab"))
