"""The explorer's simulator: runs in node, and the same runs on the native one."""

import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from laboratory import program

from bufferscope import TABLES, _core
from bufferscope.base.errors import ExperimentError
from bufferscope.model.experiment import Experiment, Point, catalogue, load

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "explorer" / "build"
"""What `make explorer` builds for tests."""
PRESETS = sorted((ROOT / "explorer" / "src" / "presets").glob("**/*.toml"))
"""Experiments of the page."""
MODULUS = 1 << 64
BRIEFLY = ("1s", "3s", "8s", "25s")
"""Durations to try: an experiment needs one after its warm-up and after what it changes."""

Request = dict[str, Any]


def request(experiment: Experiment, point: int = 0, seed: int = 1) -> Request:
    """A request for a run of a point."""
    files = {name: content.decode() for name, content in experiment.named.known.items()}
    sets = list(experiment.overrides)
    return {
        "toml": experiment.text, "files": files, "sets": sets, "point": point, "seed": seed, "changes": [], "watch": []
    }  # fmt: skip


def brief(name: str) -> Experiment:
    """An experiment with the shortest duration of `BRIEFLY` that suits it, or else its own."""
    for duration in BRIEFLY:
        try:
            return load(name, [f"duration={duration}"])
        except ExperimentError:
            continue
    return load(name)


IS_WHOLE = "WHOLE_CATALOGUE" in os.environ
LONG = {"dark-smokeping"}
"""Experiments of a day, which can't be brief."""


def every_run() -> Iterator[tuple[Experiment, int]]:
    """Runs of the catalogue and the presets: briefly the last point of each, or with `WHOLE_CATALOGUE` all of it."""
    for name in [*catalogue(), *map(str, PRESETS)]:
        if IS_WHOLE:
            experiment = load(name)
            yield from ((experiment, index) for index in range(len(experiment.points)))
        elif name not in LONG:
            experiment = brief(name)
            yield experiment, len(experiment.points) - 1


def check_runs(runs: Iterable[tuple[Experiment, int]], answers: Iterable[dict[str, Any]], seed: int) -> None:
    """The answers to these runs' requests have the native numbers, or refuse what is too large for a browser."""
    too_large = {}
    for (experiment, index), answer in zip(runs, answers, strict=True):
        if "refused" in answer:
            too_large[experiment.name] = answer["refused"]["message"]
            continue
        point = experiment.points[index]
        point = point.member(seed) if experiment.document.get("population") else point
        assert exact(answer["summary"]) == native(point, seed), (experiment.name, index)
    assert all("too large for a browser" in message for message in too_large.values()), too_large
    assert len(too_large) <= 2, too_large


def in_node(requests: Iterable[Request]) -> list[dict[str, Any]]:
    """What the page's simulator answers in node."""
    lines = "".join(f"{json.dumps(each)}\n" for each in requests)
    command: list[str | Path] = [program("node"), BUILT / "run.mjs", BUILT / "simulator.wasm"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def native(point: Point, seed: int, changes: Sequence[tuple[int, list[str]]] = ()) -> dict[str, Any]:
    """The numbers of a run on the native simulator that the page's summary has, too."""
    simulation = _core.Simulation(point.core, seed)
    for at_ns, sets in changes:
        simulation.advance(at_ns)
        simulation.change(sets)
    summary = json.loads(simulation.finish())
    tables = {name: pl.read_ipc_stream(simulation.table(index)) for index, name in enumerate(TABLES)}
    return {
        "hops": summary["hops"],
        "events": summary["events"],
        "ports": [
            {"name": port["port"], **{key: port[key] for key in ("arrived", "sent", "delivered", "dropped", "marked")}}
            for port in summary["ports"]
        ],
        "tables": {name: _totals(frame) for name, frame in tables.items() if len(frame)},
    }


def _totals(frame: pl.DataFrame) -> dict[str, Any]:
    numbers = [name for name, kind in frame.schema.items() if kind == pl.Int64]
    return {"rows": len(frame), "sums": {name: str(int(frame[name].sum() or 0) % MODULUS) for name in sorted(numbers)}}


def exact(summary: dict[str, Any]) -> dict[str, Any]:
    """The part of a page's summary that `native` has, too."""
    return {key: summary[key] for key in ("hops", "events", "ports", "tables")}
