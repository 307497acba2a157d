"""Figure: congestion window and slow-start threshold of the TCP senders over time."""

import altair as alt
import polars as pl

from bufferscope.figures import axes, parts
from bufferscope.figures.source import NoDataError, ResultRecords, over_time, points
from bufferscope.metrics.flows import cwnd_packets
from bufferscope.metrics.network import traffic_named, traffic_of_flow
from bufferscope.metrics.records import RunRecords

CWND, SSTHRESH = "cwnd", "ssthresh"


def cwnd(result: ResultRecords) -> alt.LayerChart:
    """Congestion window in packets of the bulk connections (of the pages where there is no bulk), a line a connection.

    The slow-start threshold is dashed, as far as it is not above twice the largest window: it starts out unlimited.
    """
    frame = over_time(result, _samples)
    if frame.is_empty():
        raise NoDataError("cwnd: no samples of a TCP connection")
    series = frame.select(
        "point", "flow", "time_s", pl.col("cwnd_packets").alias("packets"), pl.lit(CWND).alias("what")
    )
    thresholds = frame.select(
        "point", "flow", "time_s", pl.col("ssthresh_packets").alias("packets"), pl.lit(SSTHRESH).alias("what")
    ).filter(pl.col("packets") <= 2 * axes.span(frame["cwnd_packets"])[1])
    by = ["point", "flow", "what"]
    kept = parts.thinned(pl.concat([series, thresholds]), "packets", by).with_columns(pl.col("packets").round(2))
    x, y = axes.time_axis(result), alt.Y("packets:Q", title="window (packets)")
    single = frame.n_unique(["point", "flow"]) <= len(points(result))
    line = (
        alt.Chart(kept)
        .mark_line(clip=True, opacity=1 if single else 0.6)
        .encode(
            x=x,
            y=y,
            color=axes.point_color(result),
            detail="flow:N",
            strokeDash=alt.StrokeDash(
                "what:N", title=None, scale=alt.Scale(domain=[CWND, SSTHRESH], range=[[1, 0], [2, 4]])
            ),
        )
    )
    tips = [alt.Tooltip("flow:N"), alt.Tooltip("what:N", title="is")]
    chart = parts.framed(
        [line, parts.hover(kept, x, y, result, tips)],
        "Congestion window",
        parts.repetition_note(result),
        _description(result, frame),
    )
    return parts.zoomable(chart)


def _samples(run: RunRecords) -> pl.DataFrame:
    bulk = [entry["name"] for entry in traffic_named(run.scenario, "tcp")]
    shown = bulk or [entry["name"] for entry in traffic_named(run.scenario, "web")]
    threshold = (pl.col("ssthresh_bytes") / int(run.meta["mss_bytes"])).alias("ssthresh_packets")
    return run.flows.filter(traffic_of_flow().is_in(shown)).select("t_ns", "flow", cwnd_packets(run), threshold)


def _description(result: ResultRecords, frame: pl.DataFrame) -> str:
    told = [
        f"{point.label or 'the sender'}: {values.mean():.0f} packets on average, at most {values.max():.0f}"
        for point in points(result)
        if len(values := frame.filter(point=point.label)["cwnd_packets"].to_numpy())
    ]
    return f"Line chart of the congestion window over time. {'; '.join(told)}."
