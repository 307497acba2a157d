"""What makes a run bad without a standing queue: pings or calls lose packets, a call is poor, or some pings are slow.

The simulator records each loss with its flow, in `drops`. A kernel counts drops without their flow, so there it is not
known where a ping was lost.
"""

from dataclasses import dataclass, replace

import polars as pl

from bufferscope.analysis.explanation import fmt
from bufferscope.analysis.explanation.datapath import along_data
from bufferscope.analysis.explanation.effects import GAME_LIMITS_S, MANY_DISSATISFIED, measured_calls, mos
from bufferscope.analysis.explanation.evidence import Evidence
from bufferscope.analysis.explanation.losses import busiest, lost_packets, sees_flows
from bufferscope.analysis.explanation.pings import Pings
from bufferscope.analysis.explanation.standing import StandingQueue
from bufferscope.analysis.explanation.statement import Number
from bufferscope.analysis.findings import LEAST_ADDED_MS, LEAST_LOST, is_lossy
from bufferscope.metrics.measuring import metric
from bufferscope.model.metric_values import MetricError
from bufferscope.model.network import Port, path, traffic_ends, traffic_named


@dataclass(frozen=True)
class Harm:
    """What is bad, in words, and what did it as far as that is known."""

    sentence: str
    """As in `5 % of the pings of ping are lost`."""
    numbers: dict[str, Number]
    port: str | None = None
    """The port in which the packets were lost."""
    on_wire: bool = False
    """Whether they were lost outside of a queue."""
    queue: StandingQueue | None = None
    """The queue that comes and goes, if it is the reason."""
    is_path: bool = False
    """Whether the empty path is as bad."""
    is_slow: bool = False
    """Whether it is only that some pings are slow."""


def harm(found: Evidence) -> Harm | None:
    """The first harm in the records: lost pings, a call that was measured, a call as the pings show it, slow pings."""
    lost = [each for each in found.pings if is_lossy(each.rows["rtt_ns"].null_count(), each.rows.height)]
    if lost:
        return _of_lost(found, max(lost, key=lambda each: each.lost_share))
    poor = [(name, score) for name, score in measured_calls(found.run) if score < MANY_DISSATISFIED]
    if poor:
        return _of_call(found, *min(poor, key=lambda each: each[1]))
    known = along_data(found)
    return next((bad for each in known if (bad := _of_pings(found, each) or _of_slow(found, each))), None)


def _of_lost(found: Evidence, pings: Pings) -> Harm:
    sentence = f"{fmt.percent(pings.lost_share)} of the pings of {pings.name} are lost"
    bad = Harm(sentence, {"lost_share": pings.lost_share})
    return _located(found, bad, pings.name, pings.way)


def _of_call(found: Evidence, name: str, score: float) -> Harm:
    entry = next(entry for entry in traffic_named(found.run.scenario, "voip") if entry["name"] == name)
    near, far = traffic_ends(found.run.scenario, entry)
    way = (*path(found.run.scenario, near, far), *path(found.run.scenario, far, near))
    bad = Harm(f"the call {name} scores {score:.3g}", {"mos": score})
    try:
        lost = metric(found.run, f"voip.{name}.loss_percent").number / 100
    except MetricError:
        lost = 0.0
    if lost >= LEAST_LOST:
        bad = replace(bad, sentence=f"{bad.sentence} and loses {fmt.percent(lost)} of its packets")
        return _located(found, bad, name, way)
    return _delayed(found, bad, way)


def _of_pings(found: Evidence, pings: Pings) -> Harm | None:
    score, _ = mos(pings)
    if score >= MANY_DISSATISFIED:
        return None
    bad = Harm(f"a call would score {score:.3g}", {"mos": score})
    idle = replace(pings, rows=pings.rows.with_columns(_idle(pings, name) for name in ("rtt_ns", *_WAYS)))
    if mos(idle)[0] < MANY_DISSATISFIED:
        return replace(bad, is_path=True)
    return _delayed(found, bad, pings.way)


def _of_slow(found: Evidence, pings: Pings) -> Harm | None:
    """The slowest 5 % of the pings, if they are so slow that a game notices it on any path."""
    added_s = pings.added_s(0.95)
    if added_s < GAME_LIMITS_S[1]:
        return None
    sentence = f"{fmt.percent(0.05)} of the pings of {pings.name} exceed the idle RTT by {fmt.time(added_s)} or more"
    bad = Harm(sentence, {"added_p95_ms": 1e3 * added_s}, is_slow=True)
    return _delayed(found, bad, pings.way)


_WAYS = ("owd_up_ns", "owd_down_ns")


def _idle(pings: Pings, column: str) -> pl.Expr:
    """A column of probes as on the empty path."""
    delay_ns = round(pings.own_s * 1e9) // (2 if column in _WAYS else 1)
    return pl.lit(delay_ns, dtype=pl.Int64).alias(column)


def _located(found: Evidence, bad: Harm, name: str, way: tuple[Port, ...]) -> Harm:
    """With the port that lost the most packets of a prober or a call, if the records show it."""
    if not sees_flows(found.run):
        return bad
    counts = lost_packets(found.run, found.window)
    own = counts.filter(pl.col("flow").str.starts_with(f"{name}/") & pl.col("port").is_in([port.name for port in way]))
    port = busiest(own)
    if port is None:
        return bad
    there = own.filter(pl.col("port") == port)
    on_wire = 2 * int(there.filter(pl.col("on_wire"))["len"].sum()) >= int(there["len"].sum())
    queue = None if on_wire else found.queues.get(port)
    is_long = queue is not None and queue.high_s >= GAME_LIMITS_S[1]
    return replace(bad, port=port, on_wire=on_wire, queue=queue if is_long else None)


def _delayed(found: Evidence, bad: Harm, way: tuple[Port, ...]) -> Harm:
    """With the queue on the way that delays some packets, if there is one."""
    queues = [found.queues[port.name] for port in way if port.name in found.queues]
    worst = max(queues, key=lambda each: each.high_s, default=None)
    if worst is None or 1e3 * worst.high_s < LEAST_ADDED_MS:
        return bad
    return replace(bad, queue=worst, port=worst.port)
