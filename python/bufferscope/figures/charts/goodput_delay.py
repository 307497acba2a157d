"""Figure: goodput against delay, a mark a point: what more packets in flight bring, and what they cost.

Figure 1 of Gettys and Nichols, "Bufferbloat: dark buffers in the Internet" (2011), where a window is swept.
"""

import altair as alt
import polars as pl

from bufferscope.figures import axes, parts
from bufferscope.figures.matrix import mean_metric
from bufferscope.figures.source import NoDataError, ResultRecords, points, probe_path, sweep_title, swept_alone

RTT, GOODPUT = "median round-trip time (ms)", "goodput (Mbit/s)"


def goodput_delay(result: ResultRecords) -> alt.LayerChart:
    """A mark a point, named by it, at its median round-trip time and the goodput of all its TCP traffic.

    Each is the mean of the repetitions' values; a point whose median falls among lost probes has no mark. Where one key
    is swept on one engine, a line joins the points in the order of the sweep.
    """
    probe_path(result.runs[0])
    rtt_ms, mbit = mean_metric("rtt.p50_ms"), mean_metric("goodput.total_mbit")
    rows = [(point.label, rtt_ms(point), mbit(point)) for point in points(result)]
    frame = pl.DataFrame(
        [
            (index, label, round(rtt, 3), round(rate, 4))
            for index, (label, rtt, rate) in enumerate(rows)
            if rtt and rate
        ],
        schema={"index": pl.Int64, "point": pl.String, "rtt_ms": pl.Float64, "mbit": pl.Float64},
        orient="row",
    )
    if frame.is_empty():
        raise NoDataError("goodput_delay: no point has both goodput and a median round-trip time")
    x = axes.fitted(alt.X, "rtt_ms", RTT, frame["rtt_ms"], room=0.05)
    y = axes.fitted(alt.Y, "mbit", GOODPUT, frame["mbit"], room=0.05)
    base = alt.Chart(frame).encode(x=x, y=y)
    tips = [*axes.point_tooltip(result), axes.tooltip(x), axes.tooltip(y)]
    layers = [
        *([base.mark_line(style="guide").encode(order="index:Q")] if swept_alone(result) else []),
        base.mark_point(size=70).encode(color=axes.point_color(result, legend=False), tooltip=tips),
        base.mark_text(style="note", align="left", baseline="top", dx=6, dy=4).encode(text="point:N"),
    ]
    named = f"Each mark is labelled with its {sweep_title(result)}." if len(rows) > 1 else ""
    return parts.framed(layers, "Goodput against delay", named, _description(frame))


def _description(frame: pl.DataFrame) -> str:
    told = "; ".join(
        f"{row['point'] or 'the run'}: {row['mbit']:.2f} Mbit/s at {row['rtt_ms']:.1f} ms"
        for row in frame.iter_rows(named=True)
    )
    return f"Marks at goodput and median round-trip time. {told}."
