"""Every figure accepts any records: without rows, with nulls only, with one row, and with numbers that are no numbers.

A figure then draws what there is, or raises `NoDataError`. Its chart is JSON, which has neither NaN nor infinity.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest
from figure_specs import with_everything
from handmade import SCHEMAS, HandmadeResult, HandmadeRun, table
from hypothesis import given, settings
from hypothesis import strategies as st

from bufferscope import figures
from bufferscope.figures import pictures
from bufferscope.figures.declaring import needed
from bufferscope.interop import external_runs as observed
from bufferscope.metrics.measuring import compute
from bufferscope.model.figure_names import FigureName
from bufferscope.model.metric_values import Metrics

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # metrics of records that are no records

KEPT = ("t_ns", "sent_ns", "started_ns", "port", "layer", "flow", "probe", "traffic", "direction", "half", "method")
"""Columns that say what a row is about: without them it is no record."""
HUGE = 2**62


def _columns(frame: pl.DataFrame) -> list[str]:
    return [name for name, kind in frame.schema.items() if name not in KEPT and kind.is_numeric()]


def _literal(frame: pl.DataFrame, column: str, value: float) -> pl.Expr:
    """A value in the column's type, unless only floats have it."""
    return pl.lit(value, frame.schema[column]) if isinstance(value, int) else pl.lit(value)


def _filled(value: float) -> Callable[[pl.DataFrame], pl.DataFrame]:
    def damage(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(_literal(frame, name, value).alias(name) for name in _columns(frame))

    return damage


def _some(value: float) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Only the first row has the value."""

    def damage(frame: pl.DataFrame) -> pl.DataFrame:
        is_first = pl.int_range(pl.len()) == 0
        return frame.with_columns(
            pl.when(is_first).then(_literal(frame, name, value)).otherwise(pl.col(name)).alias(name)
            for name in _columns(frame)
        )

    return damage


def _nulls(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.lit(None, frame.schema[name]).alias(name) for name in _columns(frame))


def _all_nulls(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(
        pl.lit(None, kind).alias(name) for name, kind in frame.schema.items() if name not in ("t_ns", "sent_ns", "flow")
    )


DAMAGES: Mapping[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "whole": lambda frame: frame,
    "no rows": lambda frame: frame.clear(),
    "nulls": _nulls,
    "all nulls": _all_nulls,
    "one row": lambda frame: frame.head(1),
    "one row of nulls": lambda frame: _nulls(frame.head(1)),
    "zeros": _filled(0),
    "negative": _filled(-1),
    "huge": _filled(HUGE),
    "one huge": _some(HUGE),
    "NaN": _filled(float("nan")),
    "one NaN": _some(float("nan")),
    "infinite": _filled(float("inf")),
    "one infinite": _some(float("inf")),
    "minus infinity": _some(float("-inf")),
}


@dataclass
class DamagedRun(HandmadeRun):
    """A run of which some tables are damaged."""

    damages: dict[str, str] = field(default_factory=dict)

    def __getattr__(self, name: str) -> pl.DataFrame:
        if name not in SCHEMAS:
            raise AttributeError(name)
        return DAMAGES[self.damages.get(name, "whole")](table(name, self._rows(name)))


ORIGINS = ("sim", "capture", "import")
EMPTY = {
    "capture": ("queues", "drops", "sojourns", "capacity", "transfers", "estimates"),
    "import": ("queues", "drops", "sojourns", "capacity", "transfers", "estimates", "round_trips", "retransmissions"),
}
"""The tables of which runs that other programs observed have no rows."""


def damaged(origin: str, damages: dict[str, str], seed: int = 1, label: str = "100p") -> DamagedRun:
    made = with_everything(label)
    rows = made.rows | {"retransmissions": [{"flow": "bulk/1", "t_ns": 0, "bytes": 1, "kind": "fast"}]}
    run = DamagedRun(made.scenario, rows, seed=seed, point={"link.bottleneck.queue.limit": label}, damages=damages)
    if origin != "sim":
        run.engine = origin
        run.summary = run.summary | {"observed": {"tool": "a tool", "version": "", "sources": [], "reported": {}}}
        run.rows |= {name: [] for name in EMPTY[origin]}
    run.rows["probes"] = [row | {"probe": "ping"} for row in run.rows["probes"]]
    return run


def drawn(result: HandmadeResult, name: str) -> dict[str, Any] | None:
    """The chart as it leaves Python, which every parser of JSON can read; None without data for the figure."""
    try:
        spec: dict[str, Any] = figures.draw(result, cast("FigureName", name)).to_dict(validate=False)
    except figures.NoDataError:
        return None
    json.dumps(spec, allow_nan=False)
    return spec


FLOATS = ("NaN", "one NaN", "infinite", "one infinite", "minus infinity")
BY_METRICS = ("goodput", "throughput_delay", "rtt_equation")
"""Figures of which metrics read the tables: the store's tables have integers, so only the metrics can be no numbers."""
TIMES = ("no time", "one nanosecond", "times far beyond the end", "as recorded")


def changed(run: DamagedRun, times: str) -> DamagedRun:
    """The run with another duration, or with other times in its records."""
    if times == "no time":
        run.scenario["duration_ns"] = 0
    elif times == "one nanosecond":
        run.scenario["duration_ns"] = 1
    elif times == "times far beyond the end":
        run.rows = {
            name: [row | {key: HUGE for key in row if key in ("t_ns", "sent_ns", "started_ns")} for row in rows]
            for name, rows in run.rows.items()
        }
    return run


@pytest.mark.parametrize("damage", ["no rows", "nulls", "one row"])
@pytest.mark.parametrize("name", figures.NAMES)
def test_every_figure_accepts_records_that_say_little(name: str, damage: str) -> None:
    everywhere = dict.fromkeys(SCHEMAS, damage)
    for origin, labels in (("sim", ["50p", "100p"]), ("capture", ["50p"])):
        drawn(HandmadeResult([damaged(origin, everywhere, label=label) for label in labels]), name)


@pytest.mark.parametrize("name", figures.NAMES)
def test_every_figure_accepts_a_point_that_lacks_one_of_its_tables(name: FigureName) -> None:
    for lacking in needed(name):
        for damage in ("no rows", "all nulls"):
            drawn(HandmadeResult([damaged("sim", {lacking: damage}), damaged("sim", {}, label="200p")]), name)


@pytest.mark.parametrize("name", figures.NAMES)
@given(
    origin=st.sampled_from(ORIGINS),
    damages=st.dictionaries(st.sampled_from(sorted(SCHEMAS)), st.sampled_from(sorted(DAMAGES)), max_size=4),
    points=st.integers(1, 3),
    seeds=st.integers(1, 2),
    times=st.sampled_from(TIMES),
)
@settings(max_examples=4, deadline=None)
def test_every_figure_accepts_any_mixture_of_damaged_tables(
    name: str, origin: str, damages: dict[str, str], points: int, seeds: int, times: str
) -> None:
    own = {table: damage for table, damage in damages.items() if damage not in FLOATS or _reads_floats(name, table)}
    runs: list[HandmadeRun] = [
        changed(damaged(origin, own if point == 0 else {}, seed, f"{50 * (point + 1)}p"), times)
        for point in range(points)
        for seed in range(1, seeds + 1)
    ]
    drawn(HandmadeResult(runs), name)


def _reads_floats(name: str, table: str) -> bool:
    """Whether a figure reads the table itself, and no metric does."""
    return name not in BY_METRICS and table in ("probes", "transfers", "round_trips", "retransmissions")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e100])
@pytest.mark.parametrize("name", figures.NAMES)
def test_every_figure_accepts_metrics_that_are_no_usual_numbers(name: str, value: float) -> None:
    runs: list[HandmadeRun] = [damaged("sim", {}, seed, label) for label in ("50p", "100p") for seed in (1, 2)]
    for run in runs:
        vars(run)["metrics"] = Metrics(dict.fromkeys(KNOWN, value))
    drawn(HandmadeResult(runs), name)


KNOWN = tuple(compute(damaged("sim", {})))
"""The names of the run's metrics."""


def test_a_chart_of_records_without_values_is_still_a_picture() -> None:
    spec = drawn(HandmadeResult([damaged("sim", {"probes": "zeros"})]), "rtt")
    assert spec is not None
    assert pictures.svg(spec).startswith("<svg")


@pytest.mark.parametrize("name", ["rtt", "rtt_cdf", "cwnd", "goodput"])
def test_a_stored_observation_of_a_single_packet_is_drawn_or_refused(name: str, tmp_path: Path) -> None:
    """A capture or another program's file, as `inspect` and `import` store them: here with one row of nulls a table."""
    entries = [
        observed.TrafficEntry("flow", "tcp", "near", "far"),
        observed.TrafficEntry("ping", "ping", "near", "far"),
    ]
    observation = observed.Observation(
        "little", "Little", "capture", "a tool", "", [{"file": "a.pcap", "bytes": 1, "sha256": "0" * 64}], 0, entries
    )
    records = {
        "flows": pl.DataFrame({"t_ns": [0], "flow": ["flow/1"]}),
        "probes": pl.DataFrame({"probe": ["ping"], "seq": [0], "sent_ns": [0]}),
    }
    run = observed.store(observation, records, tmp_path)
    drawn(HandmadeResult([run]), name)  # type: ignore[list-item]
