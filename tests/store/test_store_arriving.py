"""Runs that arrive as bytes: stored if they are exactly the runs asked for; otherwise nothing is left of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from laboratory import SMALL, files, write

import bufferscope as bs
from bufferscope.base.errors import StoreError
from bufferscope.engines import REGISTRY
from bufferscope.model.experiment import load
from bufferscope.running.job import ExperimentSource, Task
from bufferscope.store import ingest as arriving
from bufferscope.store.metadata import InitialMetadata

Files = dict[str, Any]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> bs.Run:
    """A run that is sent."""
    directory = tmp_path_factory.mktemp("sent")
    return bs.run(write(directory, SMALL), seed=7, out=directory).runs[0]


def foreseen(run: bs.Run) -> InitialMetadata:
    """What is known of the run before it arrives."""
    path = run.path.parents[1] / "lab.toml"
    task = Task(load(path), 0, 7, REGISTRY["sim"], Path())
    return task.foreseen(REGISTRY["sim"].identity())


def test_a_run_arrives_as_it_was_sent(run: bs.Run, tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    arriving.store(tmp_path / "lab" / run.id, arriving.packed(run.path), foreseen(run))
    assert files(tmp_path / "lab") == files(run.path.parent)


def test_a_job_is_the_same_task_again(run: bs.Run) -> None:
    experiment = load(run.path.parents[1] / "lab.toml", ["duration=1s"])
    assert ExperimentSource.of(experiment).experiment().points[0].scenario == experiment.points[0].scenario
    task = Task(experiment, 0, 7, REGISTRY["sim"], Path("out"))
    again = task.job.task(Path("out"))
    assert again.directory == task.directory
    assert again.foreseen(None) == task.foreseen(None)


def other_seed(sent: Files) -> None:
    sent["run.json"] = json.dumps(json.loads(sent["run.json"]) | {"seed": 8}).encode()


def other_build(sent: Files) -> None:
    sent["run.json"] = json.dumps(json.loads(sent["run.json"]) | {"engine_identity": "another"}).encode()


def without_checksums(sent: Files) -> None:
    sent["run.json"] = json.dumps(json.loads(sent["run.json"]) | {"files": {}}).encode()


def flipped(sent: Files) -> None:
    sent["flows.parquet"] = bytes([sent["flows.parquet"][0] ^ 1]) + sent["flows.parquet"][1:]


def cut(sent: Files) -> None:
    sent["flows.parquet"] = sent["flows.parquet"][:-1]


def lacking(sent: Files) -> None:
    del sent["drops.parquet"]


def escaping(sent: Files) -> None:
    sent["../escaped"] = b"x"


def not_json(sent: Files) -> None:
    sent["run.json"] = b"{" * 100_000


def not_bytes(sent: Files) -> None:
    sent["drops.parquet"] = 3


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (other_seed, r"another run than the one asked for: seed: found 8"),
        (other_build, r"another run than the one asked for: engine_identity: found 'another'"),
        (without_checksums, r"^\w+\.parquet: run.json has no checksum of it"),
        (flipped, r"^flows.parquet: not what was written \(its SHA-256 is another\)"),
        (cut, r"^flows.parquet: found \d+ bytes; \d+ were written"),
        (lacking, r"found something else than the files of a run; expected .*drops.parquet"),
        (escaping, r"found something else than the files of a run"),
        (not_json, r"^run.json: not JSON"),
        (not_bytes, r"found a file that is not bytes"),
    ],
)
def test_anything_else_leaves_no_trace(
    run: bs.Run, tmp_path: Path, damage: Callable[[Files], None], words: str
) -> None:
    (tmp_path / "lab").mkdir()
    sent: Files = arriving.packed(run.path)
    damage(sent)
    with pytest.raises(StoreError, match=words):
        arriving.store(tmp_path / "lab" / run.id, sent, foreseen(run))
    assert list(tmp_path.rglob("*")) == [tmp_path / "lab"]


@pytest.mark.parametrize("sent", [None, [], "run.json", {1: b""}])
def test_what_is_no_table_of_files_is_refused(sent: object, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="found something else than the files of a run"):
        arriving.store(tmp_path / "run", sent, {})
