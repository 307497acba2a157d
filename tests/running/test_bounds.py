"""Limits of a run: a second after Ctrl-C, memory for what exists at one time, disk space only for its own data."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from laboratory import SMALL, Answer, running, start, write

import bufferscope as bs
from bufferscope.base import machine
from bufferscope.engines import engines
from bufferscope.model.expectations import ExpectationEntry
from bufferscope.model.experiment import load
from bufferscope.results.entries import concerning, gathered
from bufferscope.results.expectations import evaluate
from bufferscope.running import executors
from bufferscope.running.plan import plan

Cli = Callable[..., Answer]

CROWD = """
title = "Ten thousand flows without a bottleneck"
duration = "3600s"
sample = "10s"
link = [{ name = "line", ends = ["h1", "h2"], delay = "50ms" }]
traffic = [{ name = "crowd", kind = "tcp", from = "h1", to = "h2", flows = 10000, bytes = "1mb", transfers = 100 }]
"""


def large_sweep() -> str:
    """10,000 points of an experiment with some 400 keys, which takes a while to read."""
    pings = "\n".join(
        f'[[traffic]]\nname = "ping{n}"\nkind = "ping"\nfrom = "h1"\nto = "h2"\ninterval = "100ms"' for n in range(60)
    )
    limits = ", ".join(f'"{n}p"' for n in range(1, 101))
    rates = ", ".join(f'"{n}mbit"' for n in range(1, 101))
    link = '[[link]]\nname = "line"\nends = ["h1", "h2"]\nqueue = { qdisc = "pfifo" }'
    head = f'title = "Much to read"\nduration = "1s"\n{link}'
    return f'{head}\n{pings}\n[sweep]\n"link.line.queue.limit" = [{limits}]\n"link.line.rate" = [{rates}]\n'


def cpu_s(pid: int) -> float:
    """Processor time of a process so far, summed over its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def interrupt(process: subprocess.Popen[str], after_cpu_s: float) -> tuple[float, str]:
    """Send Ctrl-C once a process has worked for this long; returns how long it worked after that, and its output.

    The time is processor time, so that a busy machine does not affect the result.
    """
    while cpu_s(process.pid) < after_cpu_s:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    before = cpu_s(process.pid)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
    return total - before, err


def test_ctrl_c_ends_a_run_whose_events_are_large(tmp_path: Path) -> None:
    write(tmp_path, CROWD)
    with start(["run", "lab.toml", "--jobs", "1"], tmp_path) as process:
        worked_s, err = interrupt(process, after_cpu_s=4)
        assert process.returncode == 130
    told = "bufferscope: interrupted after 0 of 1 runs; no run had finished, so nothing was kept"
    assert err.splitlines()[-1] == told
    assert worked_s < 0.6


def test_ctrl_c_ends_the_reading_of_a_large_sweep(tmp_path: Path) -> None:
    write(tmp_path, large_sweep())
    with start(["run", "lab.toml"], tmp_path) as process:
        worked_s, err = interrupt(process, after_cpu_s=1.5)
        assert process.returncode == 130
    assert err == "bufferscope: interrupted while reading the experiment\n"
    assert worked_s < 1


def test_ctrl_c_ends_waiting_where_polars_is_loaded() -> None:
    program = """
import time
import polars
from bufferscope.cli.interruption import CutShortError, at_once
try:
    at_once("sleeping", lambda: print("asleep", flush=True) or time.sleep(600))
except CutShortError as cut_short:
    print(cut_short)
"""
    with running([sys.executable, "-c", program]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asleep\n"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert out == "interrupted while sleeping\n"


@pytest.mark.parametrize("loaded", ["json", "polars"])
def test_ctrl_c_in_a_program_keeps_the_finished_runs(tmp_path: Path, loaded: str) -> None:
    write(tmp_path, SMALL + '[sweep]\n"duration" = ["1s", "2s", "86400s"]\n')
    program = f"""
import {loaded}
import bufferscope as bs
try:
    bs.run("lab.toml", jobs=1)
except KeyboardInterrupt as interruption:
    print(len(interruption.finished), interruption)
"""
    command = [sys.executable, "-c", program]
    with running(command, cwd=tmp_path, stderr=subprocess.PIPE) as process:
        while len(list(tmp_path.glob("results/lab/[!.]*"))) < 2:
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert (out, err) == ("2 interrupted after 2 of 3 runs\n", "")
    assert list(tmp_path.glob("results/lab/.*")) == []


def sweep(points: int) -> str:
    """A lab with so many points, and what its document says of each, of one, and of each beside the first."""
    labels = [f"{n}p" for n in range(10, 10 + points)]
    where = '"link.line.queue.limit"'
    expectations = [
        '[[expect]]\nmetric = "rtt.max_ms"\nsays = "the more the longer"\nband = [0, 1000]',
        f'[[expect]]\nmetric = "rtt.sent"\nsays = "10"\nwhere = {{ {where} = "{labels[-1]}" }}\nband = [10, 10]',
        f'[[expect]]\nmetric = "goodput.total_mbit"\nsays = "as much"\nwhere = {{ {where} = "{labels[1]}" }}\n'
        f'relative_to = {{ {where} = "{labels[0]}" }}\nband = [0.5, 2]',
    ]
    return f"{SMALL}\n[sweep]\n{where} = {json.dumps(labels)}\n" + "\n".join(expectations)


def test_a_run_takes_no_more_room_for_the_other_points_of_its_sweep(tmp_path: Path) -> None:
    def sizes(points: int) -> list[int]:
        result = bs.run(write(tmp_path, sweep(points)), out=tmp_path / str(points))
        return [(run.path / "run.json").stat().st_size for run in result.runs]

    few, many = sizes(4), sizes(16)
    assert max(many) < max(few) + 50


def test_a_sweep_is_judged_as_if_every_run_knew_all_of_its_file(tmp_path: Path) -> None:
    experiment = load(write(tmp_path, sweep(4)))
    result = bs.run(tmp_path / "lab.toml", out=tmp_path)
    assert result.expectations == evaluate(experiment.expectations, result.runs)
    assert [e.expectation.metric for e in result.expectations] == ["rtt.max_ms"] * 4 + [
        "rtt.sent",
        "goodput.total_mbit",
    ]
    assert result.document["sweep"] == experiment.document["sweep"]
    middle = bs.Result(result.runs[2:3])
    assert [e.expectation.metric for e in middle.expectations] == ["rtt.max_ms"], "what is about it"


def test_what_concerns_a_point_is_found_and_put_together_again() -> None:
    words: Any = {"metric": "rtt.max_ms", "not_applicable": None}
    entries: list[Any] = [
        {**words, "comparisons": [{"point": 1, "relative_to": 0}, {"point": 2, "relative_to": 0}]},
        {**words, "comparisons": [{"point": 2, "relative_to": None}]},
    ]
    kept = [concerning(entries, position) for position in range(3)]
    assert [[(e["number"], len(e["comparisons"])) for e in each] for each in kept] == [
        [(1, 2)],
        [(1, 1)],
        [(1, 1), (2, 1)],
    ]

    class Stored:
        def __init__(self, expectations: list[ExpectationEntry]) -> None:
            self.meta = {"expectations": expectations}

    together = gathered([Stored(kept[2]), Stored(kept[1])])  # type: ignore[list-item]  # of a run only its metadata
    assert [(e["number"], e["comparisons"]) for e in together] == [
        (1, entries[0]["comparisons"]),
        (2, entries[1]["comparisons"]),
    ]


def test_what_a_machine_has_no_memory_for_is_refused_before_it_runs(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, SMALL)
    deep = ("--set", "link.line.rate=10kbit", "--set", "link.line.queue.limit=10000000p")
    flood = ("--set", "traffic.bulk.flows=10000", "--set", "traffic.bulk.congestion=cubic")
    monkeypatch.setattr(machine, "available_bytes", lambda: 2_000_000_000)
    refused = cli("run", "lab.toml", *deep, *flood)
    assert (refused.status, refused.out) == (1, "")
    assert "would need about" in refused.err
    assert "most of it for the traffic `bulk`, but this machine has 2 GB left" in refused.err
    assert not (tmp_path / "results").exists() or not any((tmp_path / "results").rglob("run.json"))
    rows = cli("run", "lab.toml", *flood, "--set", "sample=1ms", "--set", "link.line.queue.limit=10p")
    assert (rows.status, rows.out) == (1, "")
    assert "would record 20 million rows" in rows.err
    assert "raise `sample`" in rows.err
    assert cli("run", "lab.toml", "--quiet").status == 0


def test_no_more_runs_at_a_time_than_memory_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # One run of the small lab is estimated at 34 MB, most of which every run takes.
    tasks = plan(load(write(tmp_path, SMALL)), engines("sim"), tmp_path, repeat=5)
    monkeypatch.setattr(machine, "cpus", lambda: 4)
    for megabytes, jobs in ((20, 1), (40, 1), (80, 2), (110, 3), (200, 4)):
        monkeypatch.setattr(machine, "available_bytes", lambda left=megabytes: left * 1_000_000)
        caplog.clear()
        assert executors._fitting(tasks) == jobs
        assert [f"note: {jobs} at a time instead of 4: 4 runs may need 0.13 GB of memory" in caplog.text] == [jobs < 4]
    monkeypatch.setattr(machine, "available_bytes", lambda: 20_000_000)
    assert executors._fitting(tasks[:1]) == 4, "one run needs no room beside others"
    assert executors._fitting([]) == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            {"repeat": 1_000_001},
            "--repeat: found 1000001; allowed: 1 to 1000000 (1000000 runs at a time, 1 for each seed)",
        ),
        (
            {"repeat": 10**30},
            f"--repeat: found {10**30}; allowed: 1 to 1000000 (1000000 runs at a time, 1 for each seed)",
        ),
        ({"repeat": 0}, "--repeat: found 0; allowed: 1 to 1000000"),
        ({"seed": -1, "repeat": 5}, f"--seed: found -1; allowed: 0 to {2**63 - 5}"),
        (
            {"seed": 2**63 - 1, "repeat": 5},
            f"--seed: found {2**63 - 1}; allowed: 0 to {2**63 - 5} (--repeat 5 goes on counting from it)",
        ),
    ],
)
def test_a_wrong_number_of_repetitions_is_what_the_message_is_about(
    arguments: dict[str, int], said: str, tmp_path: Path
) -> None:
    experiment = load(write(tmp_path, SMALL))
    with pytest.raises(bs.InputError) as error:
        plan(experiment, engines("sim"), tmp_path, seed=arguments.get("seed", 1), repeat=arguments["repeat"])
    assert str(error.value) == said


def test_each_engine_and_point_counts_among_the_runs_at_a_time(tmp_path: Path) -> None:
    experiment = load(write(tmp_path, sweep(10)))
    with pytest.raises(bs.InputError, match=r"allowed: 1 to 50000 \(1000000 runs at a time, 20 for each seed\)"):
        plan(experiment, engines(["sim", "guest"]), tmp_path, repeat=50_001)
