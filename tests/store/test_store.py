"""Run directories: names, loading, and clear messages about damage."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from handmade import MS, PING, TCP, HandmadeRun, probes, scenario
from hypothesis import given
from hypothesis import strategies as st

import bufferscope as bs
from bufferscope.store import FORMAT
from bufferscope.store.writing import directory_name, prepare, staged

TRAFFIC = {"bulk": TCP, "ping": PING}


def handmade(results: Path, name: str = "a-run", **meta: Any) -> Path:
    """A whole run directory in `results/handmade` whose `run.json` says what `meta` says."""
    run = HandmadeRun(scenario(TRAFFIC), rows={"probes": probes([20.0, None, 22.0])}, id=name)
    path = run.write(results)
    alter(path, **meta)
    return path


def test_a_stored_run_reads_back(tmp_path: Path) -> None:
    run = bs.Run(handmade(tmp_path, seed=3))
    assert (run.id, run.seed, run.engine) == ("a-run", 3, "sim")
    assert run.probes["rtt_ns"].to_list() == [20 * MS, None, 22 * MS]
    assert run.probes["run"].unique().to_list() == ["a-run"]
    assert run.metrics["rtt.lost"] == 1


def test_records_of_other_origin_need_no_experiment_file(tmp_path: Path) -> None:
    run = handmade(tmp_path)
    forget(run, "document", "expectations", "overrides", "position")
    result = bs.load(run)
    assert (result.document["title"], result.overrides, result.expectations) == ("Made by hand", [], [])


def alter(run: Path, **meta: Any) -> None:
    file = run / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **meta}))


def forget(run: Path, *keys: str) -> None:
    file = run / "run.json"
    file.write_text(json.dumps({key: value for key, value in json.loads(file.read_text()).items() if key not in keys}))


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def swap(run: Path) -> None:
    (run / "drops.parquet").rename(run / "probes.parquet")


Damage = Callable[[Path], object]
BROKEN: dict[str, tuple[Damage, str]] = {
    "not there": (shutil.rmtree, "no such run"),
    "without metadata": (lambda run: (run / "run.json").unlink(), "not a run"),
    "cut off": (lambda run: (run / "run.json").write_text('{"format": 3, "ex'), "not JSON"),
    "no text": (lambda run: (run / "run.json").write_bytes(b"\xff\xfe\x00"), "not JSON"),
    "something else": (lambda run: (run / "run.json").write_text("[1, 2]"), "not written by bufferscope"),
    "of the future": (lambda run: alter(run, format=FORMAT + 1), f"reads {FORMAT}"),
    "without a seed": (lambda run: alter(run, seed=None), "seed: found None"),
    "without a table": (lambda run: (run / "probes.parquet").unlink(), "probes.parquet: not there"),
    "with an empty table": (lambda run: (run / "probes.parquet").write_bytes(b""), "probes.parquet: found 0 bytes"),
    "with a table cut off": (lambda run: cut(run / "probes.parquet"), "were written"),
    "with another's table": (swap, "probes.parquet: found"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_run_is_named_with_what_is_wrong(how: str, tmp_path: Path) -> None:
    run = handmade(tmp_path)
    damage, words = BROKEN[how]
    damage(run)
    with pytest.raises(bs.StoreError, match=re.escape(str(run))) as refusal:
        _ = bs.Run(run).probes
    assert words in str(refusal.value)


def test_an_experiment_directory_is_loaded_in_the_order_of_its_points(tmp_path: Path) -> None:
    for position, label in enumerate(["50p", "5p", "100p"]):
        for seed in (2, 1):
            handmade(tmp_path, f"{label}-{seed}", point={"limit": label}, position=position, seed=seed)
    loaded = bs.load(tmp_path / "handmade")
    assert [run.id for run in loaded.runs] == ["50p-1", "50p-2", "5p-1", "5p-2", "100p-1", "100p-2"]


def test_all_variants_are_loaded_or_those_asked_for(tmp_path: Path) -> None:
    handmade(tmp_path, "as-it-stands", started="2026-01-01T00:00:00+00:00")
    handmade(tmp_path, "changed", started="2026-01-02T00:00:00+00:00", overrides=["duration=1s"])
    directory = tmp_path / "handmade"
    assert [run.id for run in bs.load(directory).runs] == ["as-it-stands", "changed"], "nothing is dropped"
    assert [run.id for run in bs.load(directory, newest=True).runs] == ["changed"]
    assert [run.id for run in bs.load(directory, overrides=[]).runs] == ["as-it-stands"]
    with pytest.raises(bs.StoreError, match="duration=1s"):
        bs.load(directory, overrides=["duration=2s"])


def test_a_directory_of_runs_is_no_run_but_names_one(tmp_path: Path) -> None:
    run = handmade(tmp_path)
    with pytest.raises(bs.StoreError, match=re.escape(f"such as {run}")):
        bs.Run(run.parent)


def test_an_empty_directory_has_no_runs(tmp_path: Path) -> None:
    with pytest.raises(bs.StoreError, match="no run here"):
        bs.load(tmp_path)


def test_a_run_that_fails_midway_vanishes(tmp_path: Path) -> None:
    def fail() -> None:
        with staged(tmp_path / "a-run") as place:
            (place / "probes.parquet").write_bytes(b"half")
            raise RuntimeError("the engine failed")

    with pytest.raises(RuntimeError, match="the engine failed"):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_run_appears_only_when_it_is_whole(tmp_path: Path) -> None:
    with staged(tmp_path / "a-run") as place:
        (place / "run.json").write_text("{}")
        assert not (tmp_path / "a-run").exists()
    assert (tmp_path / "a-run" / "run.json").exists()
    assert len(list(tmp_path.iterdir())) == 1


def test_only_abandoned_partial_directories_are_cleared_away(tmp_path: Path) -> None:
    (tmp_path / ".partial-abandoned").mkdir()
    with staged(tmp_path / "a-run") as place:
        prepare(tmp_path)
        assert list(tmp_path.iterdir()) == [place]


labels = st.text(min_size=1, max_size=120)


@given(st.dictionaries(labels, labels, max_size=4), st.integers(0, 2**63), st.integers(0, 9))
def test_every_run_has_a_directory_name_that_suits_file_systems(point: dict[str, str], seed: int, size: int) -> None:
    name = directory_name(point, "sim", seed, {"size": size})
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}", name), name


@given(st.dictionaries(labels, labels, max_size=3), st.dictionaries(labels, labels, max_size=3))
def test_different_points_have_different_directories(first: dict[str, str], second: dict[str, str]) -> None:
    same = directory_name(first, "sim", 1, {}) == directory_name(second, "sim", 1, {})
    assert same == (first == second)
