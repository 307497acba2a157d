"""Figure: a live measurement over time: round trips, goodput and the hops of the path, with the phases shaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, parts, pointer
from bufferscope.figures.declaring import figure
from bufferscope.figures.source import NoDataError, ResultRecords, duration_s, points
from bufferscope.figures.stacked import stacked
from bufferscope.metrics.records import RunRecords
from bufferscope.model.network import NANOSECONDS
from bufferscope.store.live import ECHOES, LOADED, OVER_TCP, LiveMeasurement, live_of, path_probe

if TYPE_CHECKING:
    from bufferscope.figures.chart import Layer, PanelFigure

MS = 1e6
HEIGHT = 150
MOST_RUNS = 6
STEP_S = 0.25
"""Goodput is shown in steps of this length."""
MOST_HOPS = 16
"""The most hops of both ladders that are shown."""
RECEIVED = "received."
NAMES = {"idle": "idle", "download": "download", "upload": "upload", "both": "both", "cool_down": "cool-down"}
TRIP, UP, DOWN = "round trip", "change up", "change down"
SLOW = "round trip, 95th percentile"
STEPS, LEAST_STEP_NS = 600, 5_000_000_000
"""A connection that was watched is shown in so many steps; none is shorter than this."""
RATE_DOWN, RATE_UP = "goodput down", "goodput up"
SHADE = 0.1
DOWNLOADS = ("download", "both.down")
HEADROOM = 0.17
"""The share of the axis above the highest value: room for the marks of lost echoes and the names of the phases."""
DOTS = 100
"""The columns of a panel in which the values under the pointer are shown."""
NAMES_FROM = 10
"""Pixels from the upper edge to the names of the phases."""
LANE = 5
"""Pixels from the upper edge to the middle of the marks of lost echoes."""


@dataclass(frozen=True)
class _Panel:
    """A panel: lines of values over time."""

    title: str
    live: LiveMeasurement
    axis: str
    rows: pl.DataFrame
    """`time_s, value, series, part`; lines are broken between the parts of a series."""
    names: Sequence[str]
    """The series, in their order."""
    lost: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema={"time_s": pl.Float64}))
    """`time_s` of the lost echoes."""


@figure(needs=("probes",), shape="panels", only_of="a live measurement")
def live(result: ResultRecords) -> PanelFigure:
    """Three panels on one time axis: round trips with the changes of each way, goodput, and each hop's round trips.

    Of several measurements, a panel each shows the round trips alone. Phases with a load are shaded.
    """
    runs = [(point.label, point.first, found) for point in points(result) if (found := _live(point.first))]
    if not runs:
        raise NoDataError("live: no live measurement (bufferscope measure)")
    if len(runs) > MOST_RUNS:
        raise NoDataError(f"live: {len(runs)} measurements are too many panels to read; at most {MOST_RUNS}")
    if len(runs) > 1:
        panels = [_trips(label, run, found) for label, run, found in runs]
    else:
        ((_, run, found),) = runs
        panels = [_trips("Round trip of the whole path", run, found), _goodput(run, found), _hops(run, found)]
    drawn = [panel for panel in panels if panel.rows.height]
    if not drawn:
        raise NoDataError("live: nothing was observed before the measurement ended")
    names = list(dict.fromkeys(name for panel in drawn for name in panel.names))
    end_s = duration_s(result)
    note = "Shaded: under load. Marks at the top: lost echoes. Changes of each way are from the fastest echo."
    return stacked(
        [_layers(panel, names, end_s) for panel in drawn],
        [HEIGHT] * len(drawn),
        [panel.title for panel in drawn],
        ("The measurement over time", note),
        _description(runs),
        _color(names),
    )


def _live(run: RunRecords) -> LiveMeasurement | None:
    return live_of(run.meta["summary"])


def _trips(title: str, run: RunRecords, found: LiveMeasurement) -> _Panel:
    """The echoes: round trips, and the change of each way."""
    if "monitor" in found:
        return _watched(title, run, found)
    rows = pl.concat([_echoes(run, path_probe(found)), *_changes(run, found)]).with_columns(part=_phase(found))
    answered = rows.drop_nulls("value")
    names = [name for name in (TRIP, UP, DOWN) if name in answered["series"]]
    return _Panel(title, found, "time (ms)", answered, names, rows.filter(pl.col("value").is_null()).select("time_s"))


def _watched(title: str, run: RunRecords, found: LiveMeasurement) -> _Panel:
    """The echoes of a connection that was watched, in steps: median, 95th percentile, and the median of each way."""
    step_ns = _step_ns(found)

    def steps(frame: pl.DataFrame, time: str, value: str, series: str, part: float) -> pl.DataFrame:
        middle = ((pl.col(time) // step_ns) * step_ns + step_ns // 2).alias("t_ns")
        of_step = frame.group_by(middle).agg(pl.col(value).quantile(part)).sort("t_ns")
        return of_step.select(_seconds("t_ns"), _ms(value), series=pl.lit(series), part=pl.lit(""))

    own = run.probes.filter(pl.col("probe") == ECHOES)
    frames = [steps(own, "sent_ns", "rtt_ns", name, part) for name, part in ((TRIP, 0.5), (SLOW, 0.95))]
    for way, series in (("data", UP), ("acknowledgements", DOWN)):
        changes = run.one_way.filter(pl.col("flow") == ECHOES, pl.col("way") == way)
        frames.append(steps(changes, "t_ns", "change_ns", series, 0.5))
    rows = pl.concat(frames).with_columns(part=_phase(found)).drop_nulls("value")
    names = [name for name in (TRIP, SLOW, UP, DOWN) if name in rows["series"]]
    lost = own.filter(pl.col("rtt_ns").is_null()).group_by(pl.col("sent_ns") // step_ns * step_ns).len().sort("sent_ns")
    return _Panel(title, found, "time (ms)", rows, names, lost.select(_seconds("sent_ns")))


def _step_ns(found: LiveMeasurement) -> int:
    last_ns = max((phase["end_ns"] for phase in found["phases"]), default=0)
    return max(LEAST_STEP_NS, last_ns // STEPS)


def _echoes(run: RunRecords, probe: str) -> pl.DataFrame:
    """The round trips of the whole path; the value of a lost one is null."""
    own = run.probes.filter(pl.col("probe") == probe).sort("sent_ns")
    return own.select(_seconds("sent_ns"), _ms("rtt_ns"), series=pl.lit(TRIP), part=pl.lit(""))


def _changes(run: RunRecords, found: LiveMeasurement) -> list[pl.DataFrame]:
    """The changes of each way, without the drift of the clocks, if that is known."""
    drift_ppm = found["verdict"]["idle"]["drift_ppm"]
    if drift_ppm is None:
        return []
    frames = []
    for way, series, sign in (("data", UP, 1), ("acknowledgements", DOWN, -1)):
        own = run.one_way.filter(pl.col("flow") == ECHOES, pl.col("way") == way).sort("t_ns")
        change = (pl.col("change_ns") - sign * drift_ppm * 1e-6 * pl.col("t_ns")) / MS
        value = (change - change.min()).round(3).alias("value")
        frames.append(own.select(_seconds("t_ns"), value, series=pl.lit(series), part=pl.lit("")))
    return frames


def _goodput(run: RunRecords, found: LiveMeasurement) -> _Panel:
    """What the receivers counted, in steps."""
    own = run.flows.filter(pl.col("flow").str.starts_with(RECEIVED)).sort("t_ns")
    step = (pl.col("t_ns") / (STEP_S * NANOSECONDS)).floor().alias("step")
    last = own.group_by("flow", step, maintain_order=True).agg(pl.col("t_ns", "delivered_bytes").last())
    gained, lasted = (pl.col(name).diff().over("flow") for name in ("delivered_bytes", "t_ns"))
    is_down = pl.col("flow").str.strip_prefix(RECEIVED).is_in(DOWNLOADS)
    rows = last.select(
        _seconds("t_ns"),
        pl.when(lasted > 0).then(8e3 * gained / lasted).round(3).alias("value"),
        series=pl.when(is_down).then(pl.lit(RATE_DOWN)).otherwise(pl.lit(RATE_UP)),
        part=pl.col("flow"),
    ).drop_nulls("value")
    names = [name for name in (RATE_DOWN, RATE_UP) if name in rows["series"]]
    return _Panel("Goodput at the receiver", found, "goodput (Mbit/s)", rows, names)


def _hops(run: RunRecords, found: LiveMeasurement) -> _Panel:
    """The round trips to the hops of both ladders, with a line for each hop."""
    own = run.hops.drop_nulls("rtt_ns").sort("t_ns")
    # Beside the hops of UDP, those of TCP are only a check.
    if (by_udp := own.filter(pl.col("ladder") != OVER_TCP)).height:
        own = by_udp
    if "monitor" in found:
        step_ns = 4 * _step_ns(found)
        middle = pl.col("t_ns") // step_ns * step_ns + step_ns // 2
        own = own.group_by("ladder", "ttl", middle).agg(pl.col("rtt_ns").median()).sort("t_ns")
    ladder = pl.col("ladder").replace_strict({"client": "hop", "server": "server's hop"}, default="hop")
    shown = own.select(
        _seconds("t_ns"), _ms("rtt_ns"), "ladder", "ttl", series=pl.format("{} {}", ladder, "ttl"), part=pl.lit("")
    )
    names = shown.select("ladder", "ttl", "series").unique().sort("ladder", "ttl")["series"].to_list()[:MOST_HOPS]
    rows = shown.filter(pl.col("series").is_in(names)).drop("ladder", "ttl").with_columns(part=_phase(found))
    return _Panel("Round trip to each hop", found, "time (ms)", rows, names)


def _phase(found: LiveMeasurement) -> pl.Expr:
    """The number of a row's phase: between two phases nothing is stored, so no line crosses that time."""
    ends_s = [phase["end_ns"] / NANOSECONDS for phase in found["phases"]]
    return pl.sum_horizontal(pl.lit(0), *(pl.col("time_s") > end_s for end_s in ends_s)).cast(pl.String)


def _seconds(column: str) -> pl.Expr:
    return (pl.col(column) / NANOSECONDS).round(4).alias("time_s")


def _ms(column: str) -> pl.Expr:
    return (pl.col(column) / MS).round(3).alias("value")


def _x(column: str, end_s: float) -> alt.X:
    """The time axis of a panel."""
    return alt.X(f"{column}:Q", title=axes.TIME, scale=alt.Scale(domain=[0, end_s], nice=False))


def _color(names: Sequence[str]) -> alt.Color:
    """The colour of a line; all panels have one legend."""
    found = axes.series_color(names, None, alt.Legend(symbolType="stroke", symbolOpacity=1))
    assert isinstance(found, alt.Color), "there are fewer series than colours with dashes"
    return found


def _layers(panel: _Panel, names: Sequence[str], end_s: float) -> list[Layer]:
    """The phases, the lines with the values under the pointer, and the lost echoes."""
    x = _x("time_s", end_s)
    highest = axes.span(panel.rows["value"])[1] or 1.0
    scale = alt.Scale(domain=[0, highest / (1 - HEADROOM)], nice=False)
    y = alt.Y("value:Q", title=panel.axis, scale=scale)
    color, legend = _color(names), alt.Legend(symbolType="stroke", symbolOpacity=1)
    dash = axes.series_dash(names, None, legend)
    opacity = pointer.dimmed(pointer.isolating(color))
    by = ("series", "part")
    line = alt.Chart(parts.thinned(panel.rows, "value", by)).mark_line(clip=True, strokeWidth=1.25)
    under = alt.Chart(parts.thinned(panel.rows, "value", by, DOTS))
    tips = [alt.Tooltip("series:N", title="what"), axes.tooltip(x), axes.tooltip(y)]
    dots = under.mark_point(size=16, clip=True, opacity=0).encode(x=x, y=y, color=color, tooltip=tips)
    shown: list[Layer] = [
        *_shades(panel.live, end_s),
        line.encode(x=x, y=y, color=color, strokeDash=dash, detail="part:N", opacity=opacity),
        dots,
    ]
    if panel.lost.height:
        ticks = alt.Chart(panel.lost).mark_tick(style="lost", orient="vertical", height=7, clip=True)
        shown.append(ticks.encode(x=x, y=alt.value(LANE)))
    return shown


def _shades(found: LiveMeasurement, end_s: float) -> list[Layer]:
    """The phases behind a panel's lines: rectangles under load, and names."""
    rows = [
        (phase["start_ns"] / NANOSECONDS, phase["end_ns"] / NANOSECONDS, NAMES[phase["kind"]], phase["kind"] in LOADED)
        for phase in found["phases"]
    ]
    kinds = {"from_s": pl.Float64, "to_s": pl.Float64, "name": pl.String, "loaded": pl.Boolean}
    phases = pl.DataFrame(rows, schema=kinds, orient="row")
    begin = _x("from_s", end_s)
    rectangles = alt.Chart(phases.filter("loaded")).mark_rect(style="smoke", opacity=SHADE, clip=True)
    written = alt.Chart(phases).mark_text(style="note", align="left", baseline="top", dx=2, fontSize=11, clip=True)
    shades: list[Layer] = []
    if phases["loaded"].any():
        shades.append(rectangles.encode(x=begin, x2="to_s:Q"))
    if phases.height:
        shades.append(written.encode(x=begin, y=alt.value(NAMES_FROM), text="name:N"))
    return shades


def _description(runs: Sequence[tuple[str, RunRecords, LiveMeasurement]]) -> str:
    shown = []
    for label, run, found in runs:
        own = _echoes(run, path_probe(found))["value"]
        times = own.drop_nulls().to_numpy()
        if len(times):
            name = label or ("the echoes" if path_probe(found) == ECHOES else "new connections")
            shown.append(f"{name}: from {times.min():.1f} to {times.max():.1f} ms, {own.null_count()} lost")
    return f"Line charts of a live measurement over time. {'; '.join(shown)}."
