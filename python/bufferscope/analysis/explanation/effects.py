"""What the delay means for a call, a game and a page.

Measured where the run has such traffic; otherwise computed from its pings, and labelled as computed.
"""

import math
from collections.abc import Iterator

import polars as pl

from bufferscope.analysis.explanation import fmt
from bufferscope.analysis.explanation.datapath import along_data, elsewhere
from bufferscope.analysis.explanation.evidence import Evidence
from bufferscope.analysis.explanation.pings import Pings
from bufferscope.analysis.explanation.statement import Statement
from bufferscope.base.fmt import number
from bufferscope.metrics.measuring import metric
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.voip import opinion
from bufferscope.model.metric_values import MetricError
from bufferscope.model.network import traffic_named

BEST = 4.41
"""What G.711 reaches on a perfect path (E-model, ITU-T G.107)."""
GAME_LIMITS_S = (0.03, 0.05)
"""Added round-trip times by which a fast game is judged here. Claypool and Claypool (*Latency and player actions in
online games*, CACM 2006) find that first-person games tolerate 100 ms in all; a path of 50 to 70 ms leaves 30 to 50."""
PAGE_SEGMENTS = 70
"""A page of 100 kB, over one connection."""
INITIAL_WINDOW = 10


def effects(found: Evidence) -> Iterator[Statement]:
    """The statements on calls, games and pages."""
    asked = next((each for each in along_data(found) if not math.isinf(each.added_s(0.5))), None)
    yield from _calls(found, asked)
    if asked:
        yield _game(asked)
    yield from _pages(found, asked)
    if not asked:
        yield Statement("unknown", f"Cannot tell what {_unknown(found)}.", {}, None)


def _unknown(found: Evidence) -> str:
    """What the pings do not show, and why."""
    if found.pings and not along_data(found):
        what = "a call, a game or a page would notice on the path of the data"
        return f"{what}: {elsewhere(found)}"
    what = "a game or a page would notice"
    if found.pings:
        return f"{what}: at least half of the pings of this run have no answer"
    return f"{what}: this run has no pings"


def _calls(found: Evidence, asked: Pings | None) -> Iterator[Statement]:
    for name, score in measured_calls(found.run):
        yield Statement("call", f"The call {name} scores {_score(score)}; measured.", {"mos": score}, "rtt")
        return
    if asked:
        yield _call(asked)


def of_pings(asked: Pings) -> Iterator[Statement]:
    """The statements on calls, games and pages that come from pings alone."""
    yield _call(asked)
    yield _game(asked)
    yield _page(asked)


def _call(asked: Pings) -> Statement:
    score, is_split = mos(asked)
    unknown = None if is_split else "One-way delays are not recorded; half of the RTT is used instead."
    sentence = f"A call would score {_score(score)}; computed from the pings with the E-model."
    return Statement("call", sentence, {"mos": score}, "rtt", unknown)


def measured_calls(run: RunRecords) -> Iterator[tuple[str, float]]:
    """The names and the mean opinion scores of the run's calls."""
    for entry in traffic_named(run.scenario, "voip"):
        try:
            yield entry["name"], metric(run, f"voip.{entry['name']}.mos").number
        except MetricError:
            continue


def _score(score: float) -> str:
    quality = next(text for least, text in QUALITIES if score >= least)
    return f"{number(round(score, 2))} of {BEST} ({quality})"


MANY_DISSATISFIED = 3.6
"""Calls that score less dissatisfy many users."""
QUALITIES = (
    (4.3, "very satisfied"),
    (4.0, "satisfied"),
    (MANY_DISSATISFIED, "some users dissatisfied"),
    (3.1, "many users dissatisfied"),
    (2.6, "nearly all users dissatisfied"),
    (0.0, "not recommended"),
)
"""ITU-T G.109, table 1, from the rating R by the E-model's own equation."""


def mos(asked: Pings) -> tuple[float, bool]:
    """The score of a call whose packets take the pings' times, and whether the pings have the delay of each way."""
    ways = ("owd_up_ns", "owd_down_ns")
    rows = asked.rows
    known = any(rows[way].null_count() < rows.height for way in ways)
    if not known:
        half = rows.with_columns(owd_up_ns=pl.col("rtt_ns") // 2)
        return opinion(half), False
    return min(opinion(rows.with_columns(owd_up_ns=pl.col(way))) for way in ways), True


def _game(asked: Pings) -> Statement:
    some, more = (asked.above(limit) for limit in GAME_LIMITS_S)
    low, high = (fmt.time(limit) for limit in GAME_LIMITS_S)
    if fmt.share(more) == fmt.ALL:
        sentence = f"A fast game would notice: every ping exceeds the idle RTT by more than {high}."
    elif some >= 0.01:
        exceed = "every ping exceeds" if fmt.share(some) == fmt.ALL else f"{fmt.percent(some)} of the pings exceed"
        sentence = (
            f"A fast game would notice: {exceed} the idle RTT by more than {low}, {fmt.percent(more)} by more than "
            f"{high}."
        )
    else:
        sentence = f"A fast game would not notice: hardly any ping exceeds the idle RTT by more than {low}."
    return Statement("game", sentence, {"above_30_ms": some, "above_50_ms": more}, "rtt_cdf")


def _pages(found: Evidence, asked: Pings | None) -> Iterator[Statement]:
    for entry in traffic_named(found.run.scenario, "web"):
        try:
            mean_s = metric(found.run, f"transfer.{entry['name']}.mean_s").number
        except MetricError:
            continue
        sentence = f"A page of {entry['name']} takes {fmt.time(mean_s)} on average; measured."
        yield Statement("page", sentence, {"page_s": mean_s}, "download_time")
        return
    if asked:
        yield _page(asked)


def _page(asked: Pings) -> Statement:
    trips = round_trips(PAGE_SEGMENTS)
    own_s, added_s = trips * asked.own_s, trips * max(0.0, asked.added_s(0.5))
    sentence = (
        f"A page of 100 kB takes {trips} round trips: {fmt.time(own_s)} at the idle RTT and "
        f"{fmt.time(own_s + added_s)} at the median RTT, plus its transmission time; computed."
    )
    unknown = "Losses, other connections of the page and DNS are left out."
    return Statement("page", sentence, {"round_trips": trips, "page_s": own_s + added_s}, "rtt", unknown)


def round_trips(segments: int) -> int:
    """Round trips of a page over one new connection: the handshake, then windows of 10, 20, 40, ... segments."""
    trips, window = 1, INITIAL_WINDOW
    while segments > 0:
        segments -= window
        window *= 2
        trips += 1
    return trips
