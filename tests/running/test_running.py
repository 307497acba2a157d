"""Runs are repeatable and interruptible, and stored either completely or not at all."""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from laboratory import ENDLESS, SMALL, SWEEP, TABLES, Answer, files, start, write

import bufferscope as bs
from bufferscope.engines.guest import engine as guest
from bufferscope.model.experiment import load

Cli = Callable[..., Answer]


def records(out: Path) -> dict[str, bytes]:
    """The tables only, since `run.json` also has the date and the speed of the run."""
    return {path: content for path, content in files(out).items() if path.endswith(".parquet")}


def test_records_are_the_same_bytes_however_many_jobs_there_are(tmp_path: Path) -> None:
    lab = write(tmp_path, SMALL + SWEEP)
    one = bs.run(lab, seed=3, repeat=2, jobs=1, out=tmp_path / "one")
    four = bs.run(lab, seed=3, repeat=2, jobs=4, out=tmp_path / "four")
    assert [run.id for run in one.runs] == [run.id for run in four.runs]
    assert len(records(tmp_path / "one")) == 3 * 2 * len(TABLES)
    assert records(tmp_path / "one") == records(tmp_path / "four")


def test_another_seed_is_another_repetition(tmp_path: Path) -> None:
    first, second = bs.run(write(tmp_path, SMALL), repeat=2, out=tmp_path).runs
    assert (first.seed, second.seed) == (1, 2)
    assert not first.probes["rtt_ns"].equals(second.probes["rtt_ns"])


def test_running_again_replaces_the_run(tmp_path: Path) -> None:
    lab = write(tmp_path, SMALL)
    first = bs.run(lab, out=tmp_path / "out")
    again = bs.run(lab, out=tmp_path / "out")
    assert [run.path for run in first.runs] == [run.path for run in again.runs]
    assert len(list((tmp_path / "out" / "lab").iterdir())) == 1


def test_a_result_has_the_tables_of_all_its_runs(tmp_path: Path) -> None:
    result = bs.run(write(tmp_path, SMALL + SWEEP), out=tmp_path)
    assert result.probes.columns == ["run", "engine", "seed", "link.line.queue.limit", *bs.TABLES["probes"]]
    assert result.probes["run"].unique(maintain_order=True).to_list() == [run.id for run in result.runs]
    assert result.queues.height == sum(run.queues.height for run in result.runs)
    assert set(result.metrics["run"]) == {run.id for run in result.runs}


def test_the_metadata_tells_how_the_run_came_about(tmp_path: Path) -> None:
    run = bs.run(write(tmp_path, SMALL), ["duration=1s"], seed=5, out=tmp_path).runs[0]
    assert run.meta["bufferscope"] == bs.__version__
    assert (run.experiment, run.engine, run.seed, run.point) == ("lab", "sim", 5, {})
    assert run.meta["overrides"] == ["duration=1s"]
    assert run.scenario["duration_ns"] == 1_000_000_000
    assert run.meta["sampling"] == {"asked_ns": 10_000_000, "achieved_ns": 10_000_000}
    assert run.meta["tables"] == {name: getattr(run, name).height for name in TABLES}
    assert run.meta["summary"]["hops"] > 0
    assert run.meta["cpu_s"] > 0


@contextmanager
def endless(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """A command whose first run is soon stored and whose second is in progress."""
    write(directory, SMALL + ENDLESS)
    with start(["run", "lab.toml", "--jobs", "2"], directory) as process:
        wait_until(lambda: len(stored(directory)) == 1 and len(partial(directory)) == 1, process)
        yield process


def wait_until(happened: Callable[[], bool], process: subprocess.Popen[str], patience_s: float = 60) -> None:
    deadline = time.monotonic() + patience_s
    while not happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def stored(directory: Path) -> list[Path]:
    return list((directory / "results" / "lab").glob("[!.]*"))


def partial(directory: Path) -> list[Path]:
    return list((directory / "results" / "lab").glob(".partial-*"))


def test_ctrl_c_keeps_the_finished_runs_and_says_where_they_are(tmp_path: Path) -> None:
    with endless(tmp_path) as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    said = err.splitlines()[-1]
    assert said == "bufferscope: interrupted after 1 of 2 runs; the finished runs are complete, in results/lab/"
    assert "Traceback" not in err
    assert partial(tmp_path) == []
    assert [run.scenario["duration_ns"] for run in bs.load(tmp_path / "results" / "lab").runs] == [1_000_000_000]


def test_a_killed_run_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    with endless(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        assert len(partial(tmp_path)) == 1
        assert len(bs.load(tmp_path / "results" / "lab").runs) == 1
    bs.run(tmp_path / "lab.toml", ["duration=1s"], out=tmp_path / "results")
    assert partial(tmp_path) == [], "the next process clears it away"


def test_what_another_process_is_writing_is_left_alone(tmp_path: Path) -> None:
    with endless(tmp_path):
        bs.run(tmp_path / "lab.toml", ["duration=1s"], out=tmp_path / "results")
        assert len(partial(tmp_path)) == 1


def test_a_full_disk_is_an_error_of_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_metadata(directory: Path, metadata: object) -> None:
        raise OSError(28, "No space left on device", str(directory / "run.json"))

    monkeypatch.setattr("bufferscope.running.job.write_metadata", write_metadata)
    with pytest.raises(bs.EngineError, match="No space left on device"):
        bs.run(write(tmp_path, SMALL), out=tmp_path / "out")
    assert files(tmp_path / "out") == {}


def test_what_no_kernel_has_is_refused_by_name_before_anything_runs(tmp_path: Path) -> None:
    swept = load(write(tmp_path, SMALL + '[sweep]\n"traffic.bulk.congestion" = ["reno", "ledbat"]\n'))
    refusal = "traffic `bulk`: no released Linux kernel has the congestion control ledbat; use --engine sim"
    assert guest.refusals(swept.points) == [None, refusal]


TWO_KEYS = """
[sweep]
"link.line.queue.limit" = ["10p", "20p", "40p"]
"traffic.bulk.congestion" = ["reno", "ledbat"]
"""


def test_a_refusal_names_the_point_and_what_chooses_the_others(cli: Cli, tmp_path: Path) -> None:
    lab = str(write(tmp_path, SMALL + TWO_KEYS))
    refused = cli("run", lab, "--engine", "guest", "--out", "out")
    assert refused.status == 1
    told = " ".join(refused.err.split())
    assert "(link.line.queue.limit = 10p, traffic.bulk.congestion = ledbat) on guest: traffic `bulk`: no" in told
    assert "(and 2 more points can't run); --only chooses others, as in --only 'traffic.bulk.congestion=reno'" in told
    assert not (tmp_path / "out").exists()


def test_only_the_points_that_are_chosen_are_run(cli: Cli, tmp_path: Path) -> None:
    lab = str(write(tmp_path, SMALL + TWO_KEYS))
    chosen = ["traffic.bulk.congestion=ledbat", "link.line.queue.limit=40p", "link.line.queue.limit=10p"]
    options = [word for point in chosen for word in ("--only", point)]
    assert cli("run", lab, *options, "--quiet", "--out", "out").status == 0
    points = [dict(run.point) for run in bs.load(tmp_path / "out" / "lab").runs]
    assert points == [{"link.line.queue.limit": limit, "traffic.bulk.congestion": "ledbat"} for limit in ("10p", "40p")]
    wrong = cli("run", lab, "--only", "link.line.queue.limit=30p", "--out", "out")
    assert wrong.status == 2
    assert "--only link.line.queue.limit: found 30p; allowed: 10p or 20p or 40p" in " ".join(wrong.err.split())


def test_a_run_remembers_its_document(tmp_path: Path) -> None:
    result = bs.run("ucas-reproduce", ["duration=1s"], out=tmp_path)
    assert result.document["title"] == json.loads(json.dumps(result.runs[0].meta["title"]))
    assert "queue_length" in result.document["figures"]
    assert {evaluated.expectation.metric for evaluated in result.expectations} > {"cwnd.bulk.max_packets"}


def test_a_claim_that_another_point_shows_is_judged_once(tmp_path: Path) -> None:
    """Each run keeps only the expectations of its own point; together they are one file's."""
    result = bs.run("ucas-reproduce", out=tmp_path)
    assert len(result.variants) == 1
    assert len(result.expectations) == len(load("ucas-reproduce").expectations)
    (shown,) = (each.shown_by for each in result.expectations if each.expectation.shown_by)
    assert shown is not None
    assert shown.startswith("offload off: 90")
