"""The explanation of a live measurement: its verdict in the words of explanations, and what the delay means.

Where the queue is was decided when the measurement was made, from both ends' observations; `run.json` has the verdict.
What a call, a game and a page would notice is computed from the echoes of each phase.
"""

from collections.abc import Iterator

import polars as pl

from bufferscope.analysis import live as words
from bufferscope.analysis.explanation import fmt
from bufferscope.analysis.explanation.effects import of_pings
from bufferscope.analysis.explanation.pings import Pings
from bufferscope.analysis.explanation.statement import Cause, Explanation, Number, Statement
from bufferscope.metrics.records import RunRecords
from bufferscope.model.figure_names import FigureName
from bufferscope.store.live import ECHOES, LOADED, LiveMeasurement, path_probe
from bufferscope.store.verdict import LiveVerdict, PhaseVerdict

FIGURE: FigureName = "live"
DRIVERS = frozenset({"client_driver", "server_driver"})
LIMITS = {"receive_window": Cause.WINDOW, "sender": Cause.APPLICATION, "policer": Cause.LOSS}
WORST = ("queue", "not_filled", "other_traffic", "path_changed", "cannot_tell", "managed", "clean")
"""The outcomes in the order in which they decide about the cause."""
VIDEO_MBIT = {"1080p": 5, "4K": 15}
"""What Netflix recommends for one stream of each quality."""


def explain_live(run: RunRecords, live: LiveMeasurement) -> Explanation:
    """The explanation of a live measurement."""
    verdict = live["verdict"]
    statements = [_verdict(verdict), *_phases(verdict), *_effects(run, live), *_advice(verdict), *_unknown(live)]
    return Explanation(run.id, _cause(verdict), None, None, None, tuple(statements))


def _worst(verdict: LiveVerdict) -> PhaseVerdict | None:
    """The phase that decides: that with the worst outcome and, among those, the most delay."""

    def rank(phase: PhaseVerdict) -> tuple[int, int]:
        return WORST.index(phase["outcome"]["kind"]), -(phase["numbers"]["added"]["p95_ns"] or 0)

    return min(verdict["phases"], key=rank, default=None)


def _cause(verdict: LiveVerdict) -> Cause:
    worst = _worst(verdict)
    if worst is None:
        return Cause.UNKNOWN
    outcome = worst["outcome"]
    if outcome["kind"] == "queue":
        places = {place["place"] for where in worst["where"] for place in where["answer"]["locations"]}
        return Cause.RING if places and places <= DRIVERS else Cause.QUEUE
    if outcome["kind"] in ("clean", "managed"):
        return Cause.NONE
    return LIMITS.get(outcome["limit"] or "", Cause.UNKNOWN)


def _verdict(verdict: LiveVerdict) -> Statement:
    worst = _worst(verdict)
    if worst is None:
        return Statement("verdict", "Cannot tell: nothing was measured under load.")
    numbers: dict[str, Number] = {"outcome": worst["outcome"]["kind"]}
    if (added_ns := worst["numbers"]["added"]["p95_ns"]) is not None:
        numbers["added_p95_ms"] = added_ns / 1e6
    sentence = f"{_name(worst)}: {_first_small(worst['outcome']['text'])}"
    where = "; ".join(each["answer"]["text"] for each in worst["where"])
    sentence = _ended(sentence).removesuffix(".") + (f": {where}." if where else ".")
    return Statement("verdict", sentence, numbers, FIGURE)


def _phases(verdict: LiveVerdict) -> Iterator[Statement]:
    """The idle path, and the delay and the place of the queue in each phase."""
    if (idle_ns := verdict["idle"]["rtt"]["p50_ns"]) is not None:
        sentence = f"The idle RTT is {fmt.time(idle_ns / 1e9)} (median)."
        yield Statement("where", sentence, {"idle_p50_ms": idle_ns / 1e6}, FIGURE)
    for phase in verdict["phases"]:
        added = phase["numbers"]["added"]
        numbers: dict[str, Number] = {
            f"added_{key.removesuffix('_ns')}_ms": value / 1e6
            for key in ("p50_ns", "p95_ns", "p99_ns", "max_ns")
            if isinstance(value := added[key], int)
        }
        told = [words.percentile(added, f"p{percent}_ns") for percent in (50, 95)]
        grade = f", grade {phase['grade']}" if phase["grade"] else ""
        sentence = (
            f"{_name(phase)}: the RTT exceeds the idle median by {told[0]} ms (p50) and {told[1]} ms (p95){grade}."
        )
        yield Statement("where", sentence, numbers, FIGURE)
        for where in phase["where"]:
            places = ", ".join(
                f"{words.place(each['location'])} {words.percent(each['probability'])}"
                for each in sorted(where["posterior"], key=lambda each: -each["probability"])
                if each["probability"] >= 0.05
            )
            text = f"{_name(phase)}, {words.WAYS[where['direction']]}: the queue is in {places}."
            yield Statement("where", text, {"probability": where["answer"]["probability"]}, FIGURE)


def _effects(run: RunRecords, live: LiveMeasurement) -> Iterator[Statement]:
    """What a call, a game, a page and video would notice in each phase with a load."""
    idle_ns = live["verdict"]["idle"]["rtt"]["p50_ns"]
    echoes = run.probes.filter(pl.col("probe") == path_probe(live))
    for phase in live["phases"]:
        if phase["kind"] not in LOADED or idle_ns is None:
            continue
        own = echoes.filter(pl.col("sent_ns").is_between(phase["start_ns"], phase["end_ns"]))
        rows = own.select("sent_ns", "rtt_ns", "owd_up_ns", "owd_down_ns")
        asked = Pings(ECHOES, (), (), idle_ns / 1e9, 0.0, rows)
        name = _capital(words.PHASES[phase["kind"]])
        if rows.height and asked.added_s(0.5) != float("inf"):
            for statement in of_pings(asked):
                sentence = f"{name}: {_first_small(statement.sentence)}"
                yield Statement(statement.kind, sentence, statement.numbers, FIGURE, statement.unknown)
    yield from _video(live["verdict"])


def _video(verdict: LiveVerdict) -> Iterator[Statement]:
    phase = words.of_phase(verdict, "download")
    down = words.in_direction(phase, "down") if phase else None
    goodput = down["goodput"] if down else None
    if not goodput:
        return
    rate = goodput["mean_bps"] if goodput["p10_bps"] is None else goodput["p10_bps"]
    fits = [name for name, mbit in VIDEO_MBIT.items() if rate >= mbit * 1e6]
    enough = f"enough for a stream of {' or '.join(fits)}" if fits else "not enough for a stream of 1080p"
    sentence = (
        f"Video: the download is at least {fmt.rate(rate)} in nine of ten seconds, {enough}. Players buffer many "
        "seconds, so delay disturbs only live video."
    )
    yield Statement("video", sentence, {"goodput_mbit": rate / 1e6}, FIGURE)


def _advice(verdict: LiveVerdict) -> Iterator[Statement]:
    """What to do: the last sentence of the verdict."""
    if verdict["sentences"]:
        yield Statement("advice", verdict["sentences"][-1])


def _unknown(live: LiveMeasurement) -> Iterator[Statement]:
    for warning in live["verdict"]["warnings"]:
        yield Statement("unknown", _ended(warning))
    for sentence in words.not_reported(live):
        yield Statement("unknown", sentence)
    if not live["complete"]:
        yield Statement("unknown", f"The measurement is not complete: {live['reason'] or 'it ended early'}.")


def _name(phase: PhaseVerdict) -> str:
    return _capital(words.PHASES[phase["kind"]])


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _first_small(text: str) -> str:
    return text[:1].lower() + text[1:]


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
