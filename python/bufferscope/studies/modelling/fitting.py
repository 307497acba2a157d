"""Fit a model to a live measurement.

The rates come from the goodput, and the size of a tail-drop queue from the delay that it adds when it is full. Then
each direction is simulated with the load of the test, and both are corrected by what the simulation misses, a few
times.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl

from bufferscope.analysis import live as words
from bufferscope.analysis.fixing.located import ALONE
from bufferscope.analysis.fixing.rates import VARYING, by_bin, packet_and_payload
from bufferscope.base.errors import InputError
from bufferscope.metrics.records import RunRecords
from bufferscope.running.stepping import Simulation
from bufferscope.store.live import LiveMeasurement, live_of
from bufferscope.store.memory import MemoryRun
from bufferscope.store.verdict import Direction, DirectionNumbers, PhaseKind, PhaseVerdict
from bufferscope.studies.modelling.line import (
    IDLE_S,
    IN_PACKETS,
    LOADS,
    MANAGED,
    TAIL_DROP,
    LineModel,
    ModelledQueue,
    text,
)

ETHERNET = 14
ROUNDS = 4
"""Corrections of the rate and the size of a queue."""
CLOSE = 0.02
"""A model that misses by less is not corrected further."""
WITHIN = 0.10
"""A model fits if it misses by at most this part ..."""
WITHIN_MS = 2.0
"""... or by this time."""
LEAST_LIMIT = 3028
"""Two frames."""
LONGEST_S = 60.0
"""The longest load that is simulated."""
SECOND = 1_000_000_000
KINDS: tuple[PhaseKind, ...] = ("download", "upload", "both")


@dataclass(frozen=True)
class PhaseResult:
    """The numbers of a phase, measured or modelled."""

    p50_ms: float | None
    """Round trips under load; None if that percentile is among lost probes."""
    p95_ms: float | None
    goodput_mbit: dict[Direction, float]


@dataclass(frozen=True)
class HeldPhase:
    """A phase, measured and modelled."""

    kind: PhaseKind
    measured: PhaseResult
    modelled: PhaseResult

    def rows(self) -> Iterator[tuple[str, float | None, float | None, bool]]:
        """Each number with its name, as measured and as modelled, and whether the model fits."""
        for name, unit in (("p50", WITHIN_MS), ("p95", WITHIN_MS)):
            pair = getattr(self.measured, f"{name}_ms"), getattr(self.modelled, f"{name}_ms")
            yield f"round trip {name} (ms)", *pair, fits(*pair, unit)
        for way, rate in self.measured.goodput_mbit.items():
            other = self.modelled.goodput_mbit.get(way)
            yield f"goodput {way} (Mbit/s)", rate, other, fits(rate, other, 0.0)

    @property
    def fits(self) -> bool:
        """Whether every number fits."""
        return all(row[3] for row in self.rows())


@dataclass(frozen=True)
class LineFit:
    """A fitted model."""

    model: LineModel
    phases: tuple[HeldPhase, ...]
    notes: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Whether the model behaves as the measurement did in every phase."""
        return bool(self.phases) and all(phase.fits for phase in self.phases)


def fits(measured: float | None, modelled: float | None, within: float) -> bool:
    """Whether two numbers agree.

    >>> fits(100.0, 109.0, 2.0), fits(100.0, 112.0, 2.0), fits(1.0, 2.9, 2.0), fits(None, 5.0, 2.0)
    (True, False, True, False)
    >>> fits(None, None, 2.0)
    True
    """
    if measured is None or modelled is None:
        return measured is modelled  # both among lost probes
    return abs(modelled - measured) <= max(WITHIN * abs(measured), within)


def fit(run: RunRecords, seed: int = 1) -> LineFit:
    """The model of a live measurement. Raises `InputError` if that has too little for one."""
    live = live_of(run.meta["summary"])
    if live is None:
        raise InputError(f"{run.id}: no live measurement; allowed: a run of `bufferscope measure`")
    model, notes = _first(run, live)
    for kind in KINDS[:2]:
        (way,) = LOADS[kind]
        phase = words.of_phase(live["verdict"], kind)
        if phase and phase["numbers"]["loaded"]["count"]:
            tried = [_corrected(each, live, phase, way, seed) for each in _variants(model, way)]
            model = min(tried, key=lambda each: each[1])[0]
    notes += [f"The {way} rate varies: the model repeats the seconds of the test." for way in _varying(model)]
    held = []
    for kind in KINDS:
        found = words.of_phase(live["verdict"], kind)
        if found and all(way in model.flows for way in LOADS[kind]):
            held.append(HeldPhase(kind, measured(found), modelled(model, kind, length_s(live, found), seed)))
    return LineFit(model, tuple(held), tuple(notes))


def measured(phase: PhaseVerdict) -> PhaseResult:
    """The numbers of a measured phase."""
    loaded = phase["numbers"]["loaded"]
    rates = {
        each["direction"]: each["goodput"]["mean_bps"] / 1e6
        for each in phase["numbers"]["directions"]
        if each["loaded"] and each["goodput"]
    }
    return PhaseResult(_ms(loaded["p50_ns"]), _ms(loaded["p95_ns"]), rates)


def modelled(model: LineModel, kind: PhaseKind, load_s: float, seed: int = 1) -> PhaseResult:
    """The same numbers of a simulation."""
    return result(Simulation(text(model, kind, load_s), seed=seed).finish(), kind, load_s)


def result(run: MemoryRun, kind: PhaseKind, load_s: float) -> PhaseResult:
    """The numbers of a simulated phase, over the same times as those of a measured one."""
    begin = round(IDLE_S * SECOND)
    trips = run.probes.filter((pl.col("probe") == "ping") & (pl.col("sent_ns") >= begin))["rtt_ns"]
    trips = trips.head(max(len(trips) - 50, 0))  # the last second: answers may be under way
    late = trips.fill_null(2**62)
    values = [late.quantile(part, "linear") for part in (0.5, 0.95)]
    found = [None if value is None or value > 1e15 else value / 1e6 for value in values]
    steady = begin + round(min(load_s / 5, 2.0) * SECOND)
    rates = {way: _goodput(run, way, steady) for way in LOADS[kind]}
    return PhaseResult(found[0], found[1], rates)


def _goodput(run: MemoryRun, way: Direction, begin: int) -> float:
    name = {"up": "upload", "down": "download"}[way]
    rows = run.flows.filter(pl.col("flow").str.starts_with(f"{name}/") & (pl.col("t_ns") >= begin))
    each = rows.group_by("flow").agg(
        bits=8 * (pl.col("delivered_bytes").last() - pl.col("delivered_bytes").first()),
        seconds=(pl.col("t_ns").last() - pl.col("t_ns").first()) / SECOND,
    )
    return float(sum(bits / seconds / 1e6 for _, bits, seconds in each.rows() if seconds))


def length_s(live: LiveMeasurement, phase: PhaseVerdict) -> float:
    """How long a phase lasted."""
    times = next((each for each in live["phases"] if each["start_ns"] == phase["start_ns"]), None)
    return min((times["end_ns"] - times["start_ns"]) / SECOND, LONGEST_S) if times else 10.0


def _first(run: RunRecords, live: LiveMeasurement) -> tuple[LineModel, list[str]]:
    """The model before any simulation."""
    idle_ns = live["verdict"]["idle"]["rtt"]["p50_ns"]
    if idle_ns is None:
        raise InputError(f"{run.id}: the idle round trip was not measured, so there is no model")
    packet, payload = packet_and_payload(live)
    share = payload / (packet + ETHERNET)
    queues: dict[Direction, ModelledQueue] = {}
    flows: dict[Direction, int] = {}
    notes: list[str] = []
    for way in ("up", "down"):
        found = _loaded(live, way)
        if found is None:
            queues[way] = ModelledQueue(1e9, MANAGED, None, is_known=False)
            notes.append(f"The {way} direction was not measured under load: the model has 1 Gbit/s there.")
            continue
        phase, numbers = found
        assert numbers["goodput"]
        rate = numbers["goodput"]["mean_bps"] / share
        steps: tuple[tuple[float, float], ...] = ()
        if (numbers["goodput"]["variation"] or 0) > VARYING:
            seconds = by_bin(run, live, phase, way)
            steps = tuple((float(at), max(each / share, 1000.0)) for at, each in enumerate(seconds))
        queue, note = _queue(phase, numbers, rate, way)
        queues[way] = replace(queue, steps=steps)
        flows[way] = max(numbers["load"]["flows"], 1) if numbers["load"] else 1
        notes += [note] if note else []
    if not flows:
        raise InputError(f"{run.id}: nothing was measured under load, so there is no model")
    congestion = live["parameters"].get("congestion")
    name = congestion if congestion in ("cubic", "reno", "bbr") else "cubic"
    return LineModel(live["host"], idle_ns, queues, flows, str(name), share), notes


def _variants(model: LineModel, way: Direction) -> Iterator[LineModel]:
    """Possible models of a direction.

    A limit in bytes has room for small packets when large ones do not fit, and one in packets has not. TCP's own ups
    and downs may be all that varies.
    """
    queue = model.queues[way]
    kinds = (queue.qdisc,) if queue.limit_bytes is None else (TAIL_DROP, IN_PACKETS)
    for kind in kinds:
        for steps in dict.fromkeys([(), queue.steps]):
            yield replace(model, queues={**model.queues, way: replace(queue, qdisc=kind, steps=steps)})


def _varying(model: LineModel) -> list[Direction]:
    return [way for way, queue in model.queues.items() if queue.steps]


def _queue(phase: PhaseVerdict, numbers: DirectionNumbers, rate: float, way: str) -> tuple[ModelledQueue, str | None]:
    """The queue of a direction, and what is not known of it."""
    kind = phase["outcome"]["kind"]
    added = numbers["added"] if numbers["added"]["max_ns"] else phase["numbers"]["added"]
    full_ns = added["p99_ns"] or added["max_ns"]  # that of the probes that were not lost
    if kind == "queue" and numbers["rises"] and full_ns:
        limit = max(round(rate / 8 * full_ns / 1e9), LEAST_LIMIT)
        return ModelledQueue(rate, TAIL_DROP, limit, is_known=True), None
    if kind == "managed":
        return ModelledQueue(rate, MANAGED, None, is_known=True), None
    note = f"The {way} queue is not known ({words.OUTCOMES[kind]}): the model has {MANAGED} there."
    if kind == "not_filled":
        note += " Its rate is at least that of the model."
    return ModelledQueue(rate, MANAGED, None, is_known=False), note


def _corrected(
    model: LineModel, live: LiveMeasurement, phase: PhaseVerdict, way: Direction, seed: int
) -> tuple[LineModel, float]:
    """The model after a few simulations of the phase that loads one direction alone, and by which part it misses."""
    want = measured(phase)
    base_ms = model.rtt_ns / 1e6
    load_s = length_s(live, phase)
    best, least = model, float("inf")
    for _ in range(ROUNDS + 1):
        have = modelled(model, phase["kind"], load_s, seed)
        ratios = [_ratio(want.goodput_mbit.get(way), have.goodput_mbit.get(way))]
        ratios += [
            _ratio(_added(each, base_ms), _added(other, base_ms))
            for each, other in ((want.p50_ms, have.p50_ms), (want.p95_ms, have.p95_ms))
        ]
        miss = max(abs(1 - each) for each in ratios)
        if (want.p95_ms is None, want.p50_ms is None) != (have.p95_ms is None, have.p50_ms is None):
            miss += 1  # one loses many probes, and the other does not
        if miss < least:
            best, least = model, miss
        if least < CLOSE:
            break
        queue = model.queues[way]
        limit = queue.limit_bytes
        if limit is not None:
            limit = max(round(limit * (ratios[1] * ratios[2]) ** 0.5), LEAST_LIMIT)
        steps = tuple((at, rate * ratios[0]) for at, rate in queue.steps)
        changed = replace(queue, rate_bps=queue.rate_bps * ratios[0], limit_bytes=limit, steps=steps)
        model = replace(model, queues={**model.queues, way: changed})
    return best, least


def _ratio(want: float | None, have: float | None) -> float:
    """By what to multiply, within bounds."""
    return 1.0 if not want or not have else min(max(want / have, 0.5), 2.0)


def _added(rtt_ms: float | None, base_ms: float) -> float | None:
    return None if rtt_ms is None else max(rtt_ms - base_ms, 0.0)


def _loaded(live: LiveMeasurement, way: Direction) -> tuple[PhaseVerdict, DirectionNumbers] | None:
    found = [
        (phase, each)
        for kind in (ALONE[way], "both")
        for phase in live["verdict"]["phases"]
        if phase["kind"] == kind
        for each in phase["numbers"]["directions"]
        if each["direction"] == way and each["loaded"] and each["goodput"]
    ]
    return next(iter(found), None)


def _ms(time_ns: int | None) -> float | None:
    return None if time_ns is None else time_ns / 1e6


def worst(found: Sequence[HeldPhase]) -> HeldPhase:
    """The phase with the longest delay."""
    return max(found, key=lambda each: each.measured.p95_ms or float("inf"))
