"""Runs that other programs observed are stored, checked and measured like any run."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import bufferscope as bs
from bufferscope.base.errors import InputError, StoreError
from bufferscope.interop import external_runs as observed
from bufferscope.interop.external_runs import Observation, TrafficEntry
from bufferscope.store.metadata import sources

SECOND = 1_000_000_000
STARTED = datetime(2026, 1, 31, 12, tzinfo=UTC)


def _observation(**changes: object) -> Observation:
    known: dict[str, object] = {
        "name": "my-home",
        "title": "My line in the evening",
        "engine": "import",
        "tool": "ping",
        "version": "20240905",
        "sources": [observed.source(Path("there/evening.txt"), b"64 bytes")],
        "duration_ns": 10 * SECOND,
        "traffic": [
            TrafficEntry("test.ping", "ping", "near", "far", {"interval_ns": SECOND}),
            TrafficEntry("test.down", "tcp", "far", "near", {"flows": 1}),
        ],
        "started": STARTED,
    }
    return Observation(**{**known, **changes})  # type: ignore[arg-type]


def _probes(name: str = "test.ping") -> pl.DataFrame:
    """Ten probes, a second apart, of 20 ms to 29 ms; the last one is lost."""
    rtts = [*(20_000_000 + 1_000_000 * n for n in range(9)), None]
    return pl.DataFrame(
        {"probe": [name] * 10, "seq": range(10), "sent_ns": [n * SECOND for n in range(10)], "rtt_ns": rtts}
    )


def _flows() -> pl.DataFrame:
    """A connection that delivers a megabyte a second."""
    return pl.DataFrame(
        {
            "t_ns": [n * SECOND for n in range(11)],
            "flow": ["test.down/1"] * 11,
            "delivered_bytes": [n * 1_000_000 for n in range(11)],
        }
    )


def test_what_was_observed_is_found_and_measured_like_any_run(tmp_path: Path) -> None:
    stored = observed.store(_observation(), {"probes": _probes(), "flows": _flows()}, tmp_path)
    (run,) = bs.load(tmp_path / "my-home").runs
    assert run.id == stored.id
    assert run.metrics["rtt.mean_ms"] == 24
    assert run.metrics["rtt.lost"] == 1
    assert run.metrics["goodput.test.down_mbit"] == 8
    assert run.meta["started"] == "2026-01-31T12:00:00.000+00:00"
    assert run.meta["summary"]["observed"]["tool"] == "ping"
    assert sources(run.meta)


def test_another_file_is_another_run_and_the_same_file_is_the_same_run(tmp_path: Path) -> None:
    other = [observed.source(Path("morning.txt"), b"other bytes")]
    for files in (other, other, _observation().sources):
        observed.store(_observation(sources=files), {"probes": _probes()}, tmp_path)
    assert len(bs.load(tmp_path / "my-home").runs) == 2


def test_nothing_is_told_of_what_nobody_saw(tmp_path: Path) -> None:
    run = observed.store(_observation(), {"probes": _probes(), "flows": _flows()}, tmp_path)
    assert run.meta["summary"]["not_measured"] == ["queues", "drops", "sojourns", "capacity"]
    told = {name.split(".")[0] for name in run.metrics}
    assert told == {"rtt", "answered", "goodput"}


def test_files_of_tables_are_taken_over(tmp_path: Path) -> None:
    made = tmp_path / "made"
    first = observed.store(_observation(), {"probes": _probes(), "flows": _flows()}, tmp_path / "first")
    made.mkdir()
    for table in ("probes", "flows"):
        (made / f"{table}.parquet").write_bytes((first.path / f"{table}.parquet").read_bytes())
    second = observed.store(_observation(engine="capture"), made, tmp_path / "second")
    assert second.metrics == first.metrics
    assert second.engine == "capture"


def test_several_hosts_are_joined_by_a_router(tmp_path: Path) -> None:
    hosts = ("client", "server-a", "server-b")
    entries = [TrafficEntry(host, "tcp", host, "client", {"flows": 1}) for host in hosts[1:]]
    run = observed.store(_observation(hosts=hosts, traffic=entries), {}, tmp_path)
    assert [node["name"] for node in run.scenario["nodes"]] == ["client", "server-a", "server-b", "network"]


@pytest.mark.parametrize(
    ("table", "frame", "message"),
    [
        ("packets", pl.DataFrame(), "a table 'packets'; expected probes"),
        ("probes", pl.DataFrame({"rtt_ms": [1]}), "the column 'rtt_ms'; expected probe, seq, sent_ns"),
        ("probes", pl.DataFrame({"rtt_ns": ["soon"]}), "probes: conversion from `str` to `i64` failed"),
    ],
)
def test_wrong_tables_are_refused_and_leave_nothing(
    tmp_path: Path, table: str, frame: pl.DataFrame, message: str
) -> None:
    with pytest.raises(StoreError, match=message):
        observed.store(_observation(), {table: frame}, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_wrong_columns_is_refused(tmp_path: Path) -> None:
    pl.DataFrame({"seq": [1]}).write_parquet(tmp_path / "probes.parquet")
    with pytest.raises(StoreError, match=r"probes\.parquet: without the column probe"):
        observed.store(_observation(), tmp_path, tmp_path / "out")


@pytest.mark.parametrize("engine", ["capture", "import"])
def test_no_experiment_can_be_run_on_an_observer(engine: Any) -> None:
    command = {"capture": "inspect", "import": "import"}[engine]
    with pytest.raises(InputError, match=f"^engine {engine}: its runs are made by `bufferscope {command}`"):
        bs.run("ucas-reproduce", engine=engine)
