"""Figure: packets in the bottleneck's queue over time, with the queue's limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bufferscope.base.libraries import altair as alt
from bufferscope.base.libraries import polars as pl
from bufferscope.figures import axes, ends, multiples, parts, pointer, repetitions
from bufferscope.figures.declaring import figure
from bufferscope.figures.source import NoDataError, ResultRecords, bottleneck, has_none, over_time, points
from bufferscope.metrics.records import RunRecords
from bufferscope.model.network import ports

if TYPE_CHECKING:
    from bufferscope.figures.chart import Figure


@figure(needs=("queues", "capacity"), fits=lambda scenario: any(port.rate for port in ports(scenario).values()))
def queue_length(result: ResultRecords, port: str | None = None) -> Figure:
    """Packets in the qdisc of `port` (default: where packets waited longest) over time, with one line per point.

    If a queue has a limit in packets that is not far above the values, the limit is a dashed line.
    """
    name = port or bottleneck(result).name
    frame = over_time(result, lambda run: _samples(run, name))
    if has_none(frame, "packets"):
        raise NoDataError(f"queue_length: no samples of the queue of {name}")
    limits = _limits(result, name)
    drawn = limits.filter(pl.col("packets") <= 2 * max(1, axes.span(frame["packets"])[1]))
    lines = repetitions.drawn(result, frame, "packets")
    x, y, color = axes.time_axis(result), alt.Y("packets:Q", title="queue (packets)"), axes.point_color(result)
    layers = repetitions.layers(lines, x, y, color)
    if not drawn.is_empty():
        opacity = pointer.dimmed(pointer.isolating(color), 0.9)
        layers.append(alt.Chart(drawn).mark_rule(style="limit").encode(y=y, color=color, opacity=opacity))
    top = max([ends.top(lines, "packets"), *drawn["packets"]])
    layers += ends.layers(result, lines.strong, y, color, top)
    layers.append(pointer.hover(lines.strong, x, y, color, result, repetitions.tooltips(lines)))
    subtitle = parts.sentence(_limit_note(limits, drawn), repetitions.note(result))
    chart = multiples.framed(result, layers, (f"Queue at {name}", subtitle), _description(result, frame, name))
    return pointer.over_time(chart, result)


def _samples(run: RunRecords, port: str) -> pl.DataFrame:
    return run.queues.filter(port=port, layer="qdisc").select("t_ns", "packets")


def _limits(result: ResultRecords, port: str) -> pl.DataFrame:
    of_points = [(point.label, ports(point.first.scenario).get(port)) for point in points(result)]
    limits = [(label, known.limit_packets) for label, known in of_points if known]
    return pl.DataFrame(
        [row for row in limits if row[1] is not None], schema={"point": pl.String, "packets": pl.Int64}, orient="row"
    )


def _limit_note(limits: pl.DataFrame, drawn: pl.DataFrame) -> str:
    if not drawn.is_empty():
        return "Dashed: the queue's limit."
    unseen = sorted(set(limits["packets"]))
    return f"Limit of {' or '.join(f'{n:,}' for n in unseen)} packets, above the range shown." if unseen else ""


def _description(result: ResultRecords, frame: pl.DataFrame, port: str) -> str:
    told = []
    for point in points(result):
        packets = frame.filter(point=point.label)["packets"].to_numpy()
        if len(packets):
            told.append(
                f"{point.label or 'the queue'}: {packets.mean():.0f} packets on average, at most {packets.max()}"
            )
    return f"Line chart of the packets queued at {port} over time. {'; '.join(told)}."
