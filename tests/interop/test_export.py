"""Exporting runs as CSV, Parquet and JSON."""

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from handmade import MS, PING, TCP, HandmadeRun, pfifo, probes, scenario
from laboratory import SMALL, TABLES, Answer, files, write

import bufferscope as bs
from bufferscope.interop import exporting
from bufferscope.interop.exporting import FORMATS, export
from bufferscope.store.finding import find_anywhere

Cli = Callable[..., Answer]
LIMIT = "link.bottleneck.queue.limit"
NAMES = {"runs", "metrics", *TABLES}


def results(directory: Path) -> Path:
    """Two runs of an experiment, one of them with another queue; a probe of each is lost."""
    for limit, rtt in ((100, 120.0), (20, 40.0)):
        HandmadeRun(
            scenario({"bulk": TCP, "ping": PING}, duration_s=2, queue=pfifo(limit)),
            {"probes": probes([rtt, None, rtt + 2])},
            id=f"{limit}-sim-s1",
            overrides=[] if limit == 100 else [f"{LIMIT}={limit}p"],
        ).write(directory / "results")
    return directory / "results"


def read(file: Path) -> list[dict[str, Any]]:
    """A file's rows, numbers as numbers."""
    if file.suffix == ".json":
        rows: list[dict[str, Any]] = json.loads(file.read_text())
        return rows
    return (pl.read_csv(file) if file.suffix == ".csv" else pl.read_parquet(file)).to_dicts()


@pytest.mark.parametrize("kind", FORMATS)
def test_every_row_tells_what_its_run_was(tmp_path: Path, kind: str) -> None:
    written = export(find_anywhere(results(tmp_path)), tmp_path / "out", kind)
    assert {file.name for file in (tmp_path / "out").iterdir()} == {f"{name}.{kind}" for name in NAMES}
    assert {file.stem for file in written} == NAMES
    rows = read(tmp_path / "out" / f"probes.{kind}")
    assert [(row["experiment"], row["engine"], row["seed"], row[LIMIT], row["rtt_ns"]) for row in rows] == [
        ("handmade", "sim", 1, limit, rtt and rtt * MS)
        for limit, rtts in (("100p", (120, None, 122)), ("20p", (40, None, 42)))
        for rtt in rtts
    ]
    metrics = {(row[LIMIT], row["metric"]): row for row in read(tmp_path / "out" / f"metrics.{kind}")}
    lost, hidden = (metrics["20p", name] for name in ("rtt.lost", "rtt.p99_ms"))
    assert (lost["value"], lost["unit"]) == (1, "probes")
    assert (hidden["value"], hidden["censored"], hidden["unit"]) == (None, True, "ms")
    about = read(tmp_path / "out" / f"runs.{kind}")
    assert [row["duration_ns"] for row in about] == [2_000_000_000] * 2


def test_an_empty_table_keeps_its_columns(tmp_path: Path) -> None:
    export(find_anywhere(results(tmp_path)), tmp_path / "out")
    with (tmp_path / "out" / "drops.csv").open() as file:
        (header,) = csv.reader(file)
    assert header[:5] == ["run", "experiment", "engine", "seed", LIMIT]
    assert header[5:] == bs.TABLES["drops"]


def test_nothing_is_replaced_unasked(cli: Cli, tmp_path: Path) -> None:
    results(tmp_path)
    assert cli("export", "results", "--table", "probes").status == 0
    before = files(tmp_path / "export")
    refused = cli("export", "results")
    assert refused.status == 2
    assert "export/probes.csv: already exists; --force replaces it" in refused.err
    assert files(tmp_path / "export") == before, "nothing at all was written"
    answer = cli("export", "results/handmade/20-*", "--force", "--json", "--table", "probes")
    assert json.loads(answer.out)["files"] == ["export/probes.csv"]
    assert len(files(tmp_path / "export")["probes.csv"].splitlines()) == 4


def test_a_broken_run_leaves_no_half_export(tmp_path: Path) -> None:
    broken = results(tmp_path) / "handmade" / "20-sim-s1" / "flows.parquet"
    broken.write_bytes(b"")
    with pytest.raises(bs.StoreError, match=r"20-sim-s1/flows\.parquet"):
        export(find_anywhere(tmp_path / "results"), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["results", "--format", "xlsx"], "found 'xlsx'; allowed: csv, parquet, json"),
        (["results", "--table", "probe"], "did you mean probes?"),
        (["results", "--out", "results/handmade/20-sim-s1/run.json"], "is a file"),
        (["nowhere"], "nowhere: no such run"),
    ],
)
def test_what_cannot_be_exported_is_refused(cli: Cli, tmp_path: Path, arguments: list[str], words: str) -> None:
    results(tmp_path)
    answer = cli("export", *arguments)
    assert answer.status == 2
    assert words in answer.err
    assert not (tmp_path / "export").exists()


@pytest.mark.parametrize("name", ["g[1]", "a*b", "q?x", "{a,b}", "%20", " b ", "#c", "~d", "qu'ote", "-e"])
def test_any_name_of_a_directory_is_a_name_and_no_pattern(cli: Cli, tmp_path: Path, name: str) -> None:
    write(tmp_path, SMALL)
    assert cli("run", "lab.toml", "--out", f"./{name}", "--no-report", "--quiet").status == 0
    for command in (["show"], ["explain", "--no-cures"], ["export", "--format", "parquet", "--out", f"./to-{name}"]):
        answer = cli(command[0], f"./{name}/lab", *command[1:])
        assert (answer.status, "damaged" in answer.err) == (0, False), answer.err
    assert pl.read_parquet(tmp_path / f"to-{name}" / "probes.parquet", glob=False).height > 0


LIMITED = """
import resource, signal, sys
from bufferscope.cli import run
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
sys.exit(run(sys.argv[1:]))
"""
"""The command line where no file can have more than 300 bytes: writing fails as on a full disk."""


@pytest.mark.parametrize("kind", ["csv", "json", "parquet", "flent"])
def test_a_full_disk_is_one_line_and_leaves_nothing(cli: Cli, tmp_path: Path, kind: str) -> None:
    write(tmp_path, SMALL)
    assert cli("run", "lab.toml", "--no-report", "--quiet").status == 0
    command = [sys.executable, "-c", LIMITED, "export", "results/lab", "--format", kind, "--out", "to"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert done.stderr.startswith("bufferscope: to: "), done.stderr
    assert list((tmp_path / "to").iterdir()) == []


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-cmd", "@SUM(1)", "\t=1", "\r=1"])
def test_no_text_of_a_csv_file_is_a_formula(tmp_path: Path, text: str) -> None:
    """A title comes from other people's files; spreadsheets compute cells that begin like this."""
    HandmadeRun(scenario({"ping": PING}), {"probes": probes([1.0])}, document={"title": text}).write(
        tmp_path / "results"
    )
    runs = find_anywhere(tmp_path / "results")
    export(runs, tmp_path / "csv", "csv", tables=["runs"])
    export(runs, tmp_path / "json", "json", tables=["runs"])
    with (tmp_path / "csv" / "runs.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["title"] == f"'{text}"
    assert read(tmp_path / "json" / "runs.json")[0]["title"] == text


def test_numbers_with_a_sign_stay_numbers(tmp_path: Path) -> None:
    frame = pl.DataFrame({"number": [-1.5, 2.0], "text": ["-5", "+1.5e3"], "=name": ["plain", None]})
    exporting._write_csv(iter([frame]), tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text() == "number,text,'=name\n-1.5,-5,plain\n2.0,+1.5e3,\n"
