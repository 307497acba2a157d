"""Runs as data files of Flent: the flent package opens and plots them, and importing them gives the same metrics."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from laboratory import Answer

import bufferscope as bs
from against_flent import parsed
from bufferscope.base.errors import InputError
from bufferscope.interop.exporting import export_each
from bufferscope.interop.importing.conversion import import_file
from bufferscope.store.run import Run

Cli = Callable[..., Answer]

NETWORK = """
title = "A line of 10 Mbit/s"
duration = "16s"
[[link]]
name = "bottleneck"
ends = ["home", "server"]
rate = "10mbit"
delay = "10ms"
queue = { qdisc = "pfifo", limit = "15p" }
"""
PING = """
[[traffic]]
name = "ping"
kind = "ping"
from = "home"
to = "server"
interval = "100ms"
"""


def tcp(name: str, sender: str, receiver: str, flows: int = 1) -> str:
    """Bulk TCP, as an experiment's file has it."""
    ends = f'from = "{sender}"\nto = "{receiver}"'
    return f'[[traffic]]\nname = "{name}"\nkind = "tcp"\nflows = {flows}\n{ends}\n'


def flents(kind: str) -> str:
    """One of Flent's tests as a kind of traffic."""
    return f'[[traffic]]\nname = "{kind}"\nkind = "{kind}"\nfrom = "home"\nto = "server"\ndelay = "2s"\n'


UP, DOWN = tcp("up", "home", "server"), tcp("down", "server", "home")
TRAFFIC = {
    "rrul": flents("rrul"),
    "rrul_be": flents("rrul_be"),
    "tcp_upload": UP + PING,
    "tcp_download": DOWN + PING,
    "tcp_bidirectional": UP + DOWN + PING,
    "tcp_nup": tcp("up", "home", "server", 3) + PING,
    "tcp_ndown": tcp("down", "server", "home", 2) + PING,
    "rrul_be_nflows": tcp("up", "home", "server", 2) + tcp("down", "server", "home", 3) + PING,
    "ping": PING,
}
"""Traffic by the test of Flent that it resembles."""
PLOTS = [
    ("rrul", "ping_cdf"),
    ("rrul", "all_scaled"),
    ("rrul", "totals"),
    ("tcp_upload", "totals"),
    ("tcp_download", "ping_cdf"),
    ("tcp_download", "totals"),
    ("tcp_nup", "totals"),
    ("rrul_be_nflows", "all_scaled"),
    ("ping", "ping_cdf"),
]
"""Tests of Flent, each with one of its plots."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """A simulated run of each kind of traffic."""
    directory = tmp_path_factory.mktemp("runs")
    made = {}
    for name, traffic in TRAFFIC.items():
        file = directory / f"{name}.toml"
        file.write_text(NETWORK + traffic)
        (made[name],) = bs.run(file, out=directory / "results").runs
    return made


def _exported(run: Run, directory: Path) -> Path:
    ((file,), _) = export_each([run], directory, "flent")
    return file


def _content(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    return found


def _flent(directory: Path, *arguments: str) -> str:
    """What flent prints; it must succeed."""
    environment = {**os.environ, "HOME": str(directory), "MPLCONFIGDIR": str(directory), "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, "-m", "flent", *arguments], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", TRAFFIC)
def test_a_run_is_the_test_of_flent_that_its_traffic_resembles(runs: dict[str, Run], tmp_path: Path, name: str) -> None:
    assert _content(_exported(runs[name], tmp_path))["metadata"]["NAME"] == name


@pytest.mark.parametrize(("name", "plot"), PLOTS)
def test_flent_plots_it(runs: dict[str, Run], tmp_path: Path, name: str, plot: str) -> None:
    told = _flent(tmp_path, "-i", str(_exported(runs[name], tmp_path)), "-p", plot, "-o", str(tmp_path / "plot.png"))
    assert (tmp_path / "plot.png").stat().st_size > 10_000
    assert "WARNING" not in told
    assert "ERROR" not in told


def test_flent_finds_the_rates_and_round_trips_of_the_run(runs: dict[str, Run], tmp_path: Path) -> None:
    """Flent prints the values of its plot between the fifth second and the fifth from the end."""
    file = _exported(runs["tcp_download"], tmp_path)
    _flent(tmp_path, "-i", str(file), "-f", "csv", "-o", str(tmp_path / "out.csv"))
    rows = [line.split(",") for line in (tmp_path / "out.csv").read_text().splitlines()]
    place = rows[0].index("TCP download")
    rates = [float(row[place]) for row in rows[1:] if row[place]]
    assert sum(rates) / len(rates) == pytest.approx(runs["tcp_download"].metrics["goodput.down_mbit"], rel=0.05)


@pytest.mark.parametrize("name", ["rrul", "rrul_be"])
def test_flents_totals_are_those_of_the_run(runs: dict[str, Run], tmp_path: Path, name: str) -> None:
    """The load is on for 12 of 16 s; both are of that time, in Flent's summary and in the values that it plots."""
    run, file = runs[name], _exported(runs[name], tmp_path)
    printed = parsed(_flent(tmp_path, "-i", str(file), "-f", "summary"))
    assert printed["TCP totals"][0] == pytest.approx(run.metrics["goodput.total_mbit"], abs=0.005)
    for way in ("up", "down"):
        ours = run.metrics[f"goodput.{name}.{way}_mbit"]
        assert printed[f"TCP {way}load sum"][0] == pytest.approx(ours, abs=0.005)
    assert printed["Ping (ms) avg"][0] == pytest.approx(run.metrics["rtt.mean_ms"], abs=0.005)
    plotted = [value for value in _content(file)["results"]["TCP totals"] if value is not None]
    assert sum(plotted) / len(plotted) == pytest.approx(run.metrics["goodput.total_mbit"], rel=0.01)


@pytest.mark.parametrize("name", TRAFFIC)
def test_importing_it_gives_the_same_metrics(runs: dict[str, Run], tmp_path: Path, name: str) -> None:
    """Windows are sampled less often in Flent's files; all else is the same to a thousandth."""
    again = import_file(_exported(runs[name], tmp_path), tmp_path / "results").metrics
    wanted = {
        metric: value
        for metric, value in runs[name].metrics.items()
        if metric.split(".")[0] in ("rtt", "answered", "idle", "goodput", "retransmits")
    }
    assert {metric: again[metric] for metric in wanted} == pytest.approx(wanted, rel=1e-3)
    assert not {metric for metric in again if metric.split(".")[0] in ("queue", "utilization", "drops")}


def test_lost_probes_are_in_it_without_a_round_trip(runs: dict[str, Run], tmp_path: Path) -> None:
    run = runs["rrul"]
    raw = _content(_exported(run, tmp_path))["raw_values"]
    pings = [each for series, values in raw.items() if series.startswith("Ping") for each in values]
    lost = run.probes["rtt_ns"].null_count()
    assert lost > 0
    assert sum(each.get("lost", False) for each in pings) == lost
    assert len(pings) == len(run.probes)


def test_traffic_without_a_place_is_named(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call = '[[traffic]]\nname = "call"\nkind = "voip"\nfrom = "home"\nto = "server"\n'
    Path("lab.toml").write_text(NETWORK.replace("16s", "2s") + UP + PING + call)
    assert cli("run", "lab.toml", "--quiet").status == 0
    answer = cli("export", "results/lab", "--format", "flent")
    assert answer.status == 0
    assert "Flent's test tcp_upload has no place for call" in answer.err
    assert cli("export", "results/lab", "--format", "flent").status == 2  # it exists
    assert cli("export", "results/lab", "--format", "flent", "--force").status == 0
    refused = cli("export", "results/lab", "--format", "flent", "--table", "probes")
    assert (refused.status, "allowed with --format flent: none" in refused.err) == (2, True)


def test_a_run_without_anything_that_flent_measures_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    call = '[[traffic]]\nname = "call"\nkind = "voip"\nfrom = "home"\nto = "server"\n'
    file.write_text(NETWORK.replace("16s", "1s") + call)
    runs = bs.run(file, out=tmp_path / "results").runs
    with pytest.raises(InputError, match="found voip; allowed for --format flent: tcp to or from the end that pings"):
        export_each(runs, tmp_path / "export", "flent")
    assert list((tmp_path / "export").iterdir()) == []
