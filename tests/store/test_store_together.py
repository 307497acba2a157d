"""Several processes write the same run while others read it, and every reader finds a complete run."""

import subprocess
import sys
from pathlib import Path

import pytest
from handmade import PING, HandmadeRun, probes, scenario

import bufferscope as bs
from bufferscope.store import writing
from bufferscope.store.writing import prepare, staged

WRITER = """
import json, sys
from pathlib import Path
import shutil
from bufferscope.store.writing import prepare, staged, write_metadata

source, target, times = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
metadata = json.loads((source / "run.json").read_text())
for _ in range(times):
    prepare(target.parent)
    with staged(target) as place:
        for table in source.glob("*.parquet"):
            shutil.copy(table, place)
        write_metadata(place, metadata)
"""
WRITERS, TIMES = 4, 150


@pytest.fixture
def source(tmp_path: Path) -> Path:
    run = HandmadeRun(scenario({"ping": PING}), rows={"probes": probes([20.0, 21.0])}, id="a-run")
    return run.write(tmp_path / "source")


def test_a_reader_always_finds_a_run_that_four_processes_keep_writing(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "results" / source.name
    target.parent.mkdir()
    with staged(target) as place:
        for file in source.iterdir():
            (place / file.name).write_bytes(file.read_bytes())
    command = [sys.executable, "-c", WRITER, str(source), str(target), str(TIMES)]
    writers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(WRITERS)]
    reads = 0
    try:
        while any(writer.poll() is None for writer in writers):
            assert bs.Run(target).meta["experiment"] == "handmade"
            assert target.is_dir()
            reads += 1
    finally:
        complaints = [writer.communicate()[1] for writer in writers]
    assert complaints == [""] * WRITERS
    assert reads > TIMES
    assert bs.Run(target).probes.height == 2
    assert list(target.parent.iterdir()) == [target], "nothing is left behind"


def test_a_place_that_is_taken_for_abandoned_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    makes, made = Path.mkdir, []

    def make_and_lose(path: Path) -> None:
        """Another process clears up between the directory and its lock, the first time."""
        makes(path)
        made.append(path)
        if len(made) == 1:
            prepare(tmp_path)

    with monkeypatch.context() as patch:
        patch.setattr(
            Path, "mkdir", lambda path, *_, **options: makes(path, **options) if options else make_and_lose(path)
        )
        with staged(tmp_path / "a-run") as place:
            (place / "run.json").write_text("{}")
    assert len(made) == 2
    assert [entry.name for entry in tmp_path.iterdir()] == ["a-run"]


def test_a_file_system_that_exchanges_nothing_gets_the_new_run_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "exchange", lambda *_: False)
    for content in ("old", "new"):
        with staged(tmp_path / "a-run") as place:
            (place / "run.json").write_text(content)
    assert (tmp_path / "a-run" / "run.json").read_text() == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a-run"]
