"""Measures what many short runs cost, all included: simulating, storing, loading them again, and all metrics.

One TCP connection and a ping over 2 Mbit/s, on one core. Each case has a process of its own, which has done all
of it once before, so that loading libraries does not count.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, cast

import bufferscope as bs

CASES = [(1_000, 10, "single"), (1_000, 10, "sweep"), (10_000, 1, "sweep")]
"""Runs, simulated seconds of each, and how they are stored."""
SHORT = [(10, 1, "single"), (10, 1, "sweep")]
"""The cases of `--short`: enough to see that everything works."""
POINTS = [8, 16, 32, 64, 128]
"""The lengths of the queue, in packets."""
DUMBBELL = Path(__file__).parents[1] / "scripts" / "agreement" / "dumbbell.toml"
CHANGES: Mapping[str, object] = {
    "link.access.delay": "5ms",
    "link.bottleneck.delay": "5ms",
    "link.bottleneck.rate": "2mbit",
    "traffic.ping.interval": "100ms",
    "sweep.link.bottleneck.queue.limit": [f"{packets}p" for packets in POINTS],
}


def main() -> None:
    """Print a line for each case as soon as it is there."""
    short = sys.argv[1:] == ["--short"]
    if sys.argv[1:] and not short:
        runs, seconds, layout = sys.argv[1:]
        print(json.dumps(measured(int(runs), int(seconds), layout)))
        return
    print("\nMany short runs: one flow and a ping over 2 Mbit/s, on one core; CPU time in ms for each run")
    print("  runs  seconds  stored    simulate   store    load  metrics     sum    files     MB  peak MiB")
    for case in SHORT if short else CASES:
        # One thread: polars takes CPU time to keep more threads busy than this work needs.
        command = [sys.executable, __file__, *map(str, case)]
        printed = subprocess.run(
            command, env={**os.environ, "POLARS_MAX_THREADS": "1"}, check=True, capture_output=True, text=True
        ).stdout
        show(*case, json.loads(printed))


def measured(runs: int, seconds: int, layout: str) -> Mapping[str, float]:
    """CPU times in ms for each run, files, bytes and memory of a case."""
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)

        def run(repeat: int, out: str) -> Callable[[], bs.Result]:
            overrides = {**CHANGES, "duration": f"{seconds}s"}
            stored = cast(Literal["single", "sweep"], layout)
            return lambda: bs.run(DUMBBELL, overrides, repeat=repeat, jobs=1, out=directory / out, layout=stored)

        _ = run(1, "before")().metrics
        result, running_ms = timed(run(runs // len(POINTS), "out"))
        simulating_ms = 1000 * sum(each.meta["cpu_s"] for each in result.runs)
        del result
        shelf = directory / "out" / DUMBBELL.stem
        loaded, loading_ms = timed(lambda: bs.load(shelf))
        _, metrics_ms = timed(lambda: loaded.metrics)
        files = [path.stat().st_size for path in shelf.rglob("*") if path.is_file()]
        phases = {
            "simulate": simulating_ms,
            "store": running_ms - simulating_ms,
            "load": loading_ms,
            "metrics": metrics_ms,
        }
        return {
            **{name: spent_ms / runs for name, spent_ms in phases.items()},
            "files": len(files),
            "bytes": sum(files),
            "peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        }


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What `work` returns, and the CPU time in ms that it took."""
    before_s = time.process_time()
    found = work()
    return found, 1000 * (time.process_time() - before_s)


def show(runs: int, seconds: int, layout: str, m: Mapping[str, float]) -> None:
    """Print one line of the table."""
    phases = [m[phase] for phase in ("simulate", "store", "load", "metrics")]
    times = "".join(f"{spent_ms:8.2f}" for spent_ms in (*phases, sum(phases)))
    size, peak = m["bytes"] / 1e6, m["peak_kib"] / 1024
    print(f"{runs:6}  {seconds:7}  {layout:8}  {times}  {m['files']:7.0f} {size:6.1f}  {peak:8.0f}", flush=True)


main()
