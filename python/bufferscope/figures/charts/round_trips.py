"""Figure: the round-trip times that a capture shows of its TCP connections, over time; marks where data was sent again.

After figure 4a of Gettys and Nichols, "Bufferbloat: dark buffers in the Internet" (2011). A capture between the ends
sees two round trips, to the receiver and to the sender; together they are that of the path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, connections, multiples, parts, pointer, repetitions
from bufferscope.figures.declaring import figure
from bufferscope.figures.source import NoDataError, ResultRecords, has_none, over_time, points
from bufferscope.metrics.paths import used_halves
from bufferscope.metrics.records import RunRecords
from bufferscope.model.network import OVER_TCP, traffic_named, traffic_of_flow

if TYPE_CHECKING:
    from bufferscope.figures.chart import Figure

MS = 1e6
WAYS = {"receiver": "to the receiver and back", "sender": "to the sender and back"}


@figure(needs=("round_trips", "retransmissions"))
def round_trips(result: ResultRecords) -> Figure:
    """Round-trip times in ms, one line per connection, and per half of the path if both are long; by the answer's time.

    The times are those of segments and their acknowledgements, or those of timestamps where these show much more. Marks
    at the upper edge are segments that were sent again.
    """
    frame = connections.named(result, over_time(result, _samples))
    if has_none(frame, "rtt_ms"):
        raise NoDataError("round_trips: no round trips of a TCP connection; captures have them (bufferscope inspect)")
    again = over_time(result, _again)
    by = ["point", "flow", "way"]
    lines = repetitions.drawn(result, frame, "rtt_ms", by)
    x, color = axes.time_axis(result), connections.color(result, frame)
    y = axes.fitted(alt.Y, "rtt_ms", "round-trip time (ms)", frame["rtt_ms"], parts.headroom(result, again))
    ways = [way for way in WAYS.values() if way in frame["way"]]
    dashes = alt.Scale(domain=ways, range=[[1, 0], [2, 4]][: len(ways)])
    legend = alt.Legend(symbolOpacity=1)
    dash = alt.StrokeDash("way:N", title=None, scale=dashes, legend=legend) if len(ways) > 1 else alt.Undefined
    several = frame.n_unique(by) > frame.n_unique(["point"])
    layers = repetitions.layers(lines, x, y, color, ["flow:N", "way:N"], dash, opacity=0.6 if several else 1)
    tips = [*connections.tips(frame), *([alt.Tooltip("way:N")] if len(ways) > 1 else [])]
    layers.append(pointer.hover(lines.strong, x, y, color, result, [*tips, *repetitions.tooltips(lines)]))
    layers += parts.lanes(result, again, "sent again")
    subtitle = parts.sentence(_again_note(result, again), repetitions.note(result))
    title = "Round-trip time of the connections"
    chart = multiples.framed(result, layers, (title, subtitle), _description(result, frame))
    return pointer.over_time(chart, result)


def _samples(run: RunRecords) -> pl.DataFrame:
    """`t_ns, flow, way, rtt_ms`: of each flow the halves that its path's round trips are from."""
    found = used_halves(_of_tcp(run, run.round_trips).lazy()).collect()
    rtt_ms = (pl.col("rtt_ns") / MS).round(3).alias("rtt_ms")
    way = pl.col("half").replace_strict(WAYS, default=None, return_dtype=pl.String).alias("way")
    return found.sort("t_ns").select("t_ns", "flow", way, rtt_ms)


def _again(run: RunRecords) -> pl.DataFrame:
    return _of_tcp(run, run.retransmissions).select("t_ns", "flow")


def _of_tcp(run: RunRecords, rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(traffic_of_flow().is_in([entry["name"] for entry in traffic_named(run.scenario, *OVER_TCP)]))


def _again_note(result: ResultRecords, again: pl.DataFrame) -> str:
    if again.is_empty():
        return "Nothing was sent again."
    counts = {point.label: again.filter(point=point.label).height for point in points(result)}
    return f"Marks at the top: sent again ({parts.counts_note(counts)})."


def _description(result: ResultRecords, frame: pl.DataFrame) -> str:
    told = []
    for point in points(result):
        for way in WAYS.values():
            own = frame.filter(point=point.label, way=way)["rtt_ms"].to_numpy()
            if len(own):
                name = f"{point.label}, {way}" if point.label else way
                told.append(f"{name}: from {own.min():.1f} to {own.max():.1f} ms")
    return f"Line chart of the connections' round-trip time over time. {'; '.join(told)}."
