"""Fit a model to what a measurement shows of a line.

The rates come from the goodput, and the size of a tail-drop queue from the delay that it adds when it is full. Then
each direction is simulated with the load of the test, and both are corrected by what the simulation misses, a few
times.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import polars as pl

from bufferscope.base.errors import InputError
from bufferscope.running.stepping import Simulation
from bufferscope.store.memory import MemoryRun
from bufferscope.store.verdict import Direction, PhaseKind
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
from bufferscope.studies.modelling.measured import (
    SECOND,
    MeasuredDirection,
    MeasuredLine,
    MeasuredPhase,
    PhaseResult,
    Trips,
    notes_of,
)

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
ANSWERED_S = 1.0
"""How much longer than the load a simulation runs at least: until the last probes are answered."""
UNMEASURED_BPS = 1e9
"""The rate of a direction that was not measured."""


@dataclass(frozen=True)
class HeldPhase:
    """A phase, measured and modelled."""

    phase: MeasuredPhase
    """What was measured in it."""
    modelled: PhaseResult
    """The same numbers of the model."""

    @property
    def kind(self) -> PhaseKind:
        """What was loaded."""
        return self.phase.kind

    @property
    def measured(self) -> PhaseResult:
        """The numbers of the measurement."""
        return self.phase.result

    def rows(self) -> Iterator[tuple[str, float | None, float | None, bool]]:
        """Each number with its name, as measured and as modelled, and whether the model fits.

        Yields
        ------
        tuple
            The name with its unit, the measured and the modelled number, and whether they agree.
        """
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

    line: MeasuredLine
    """What was measured."""
    model: LineModel
    """The line, as far as the measurement shows it."""
    phases: tuple[HeldPhase, ...]
    """Each phase with load, measured and modelled."""
    notes: tuple[str, ...]
    """What is not known, in sentences."""

    @property
    def fits(self) -> bool:
        """Whether the model behaves as the measurement did in every phase."""
        return bool(self.phases) and all(phase.fits for phase in self.phases)

    def phase(self, kind: PhaseKind | None = None) -> HeldPhase:
        """A phase.

        Parameters
        ----------
        kind
            `"download"`, `"upload"` or `"both"`. Default: the phase with the longest delay.

        Returns
        -------
        HeldPhase
            The phase, measured and modelled.

        Raises
        ------
        InputError
            This phase was not measured.
        """
        if kind is None:
            return worst(self.phases)
        found = next((each for each in self.phases if each.kind == kind), None)
        if found is None:
            there = ", ".join(each.kind for each in self.phases)
            raise InputError(f"phase: {kind!r:.60} was not measured; there are {there}")
        return found

    def experiment(self, kind: PhaseKind | None = None) -> str:
        """The experiment file of the model, for `run`, `choose` and `explain`.

        Parameters
        ----------
        kind
            The phase whose load the file has, as for `phase`.

        Returns
        -------
        str
            The file in TOML.

        Raises
        ------
        InputError
            This phase was not measured.
        """
        found = self.phase(kind)
        return text(self.model, found.kind, found.phase.load_s)


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


def fit(line: MeasuredLine, seed: int = 1) -> LineFit:
    """The model of a measured line."""
    model = _first(line)
    notes = list(notes_of(line))
    others: dict[Direction, list[ModelledQueue]] = {}
    both = next((each for each in line.phases if each.kind == "both"), None)
    for phase in line.phases:
        if len(LOADS[phase.kind]) == 1:
            (way,) = LOADS[phase.kind]
            tried: list[tuple[LineModel, float]] = []
            for each in _variants(model, line.directions[way], way):
                tried.append(_corrected(each, phase, way, seed))
                if tried[-1][1] < CLOSE and both is None:
                    break
            model, _ = min(tried, key=lambda each: each[1])
            others[way] = [each.queues[way] for each, miss in tried if miss <= WITHIN]
    if both:
        model = _told_by_both(model, others, both, seed)
    notes += [f"The {way} rate varies: the model repeats the seconds of the test." for way in _varying(model)]
    held = [HeldPhase(each, modelled(model, each, seed)) for each in line.phases]
    return LineFit(line, model, tuple(held), tuple(notes))


def _told_by_both(
    model: LineModel, others: Mapping[Direction, Sequence[ModelledQueue]], both: MeasuredPhase, seed: int
) -> LineModel:
    """The model with the kinds of limits that the phase with both loads shows.

    A load alone hardly shows whether a limit is in bytes or in packets. The acknowledgements of the other direction do:
    they fill one in packets, and hardly one in bytes. Rates and sizes stay as they are.
    """
    possible: list[list[tuple[Direction, ModelledQueue]]] = []
    for way, best in model.queues.items():
        kinds = {queue.qdisc: queue for queue in others.get(way, ()) if queue.steps == best.steps}
        possible.append([(way, queue) for queue in ({**kinds, best.qdisc: best}).values()])
    models = [replace(model, queues=dict(each)) for each in product(*possible)]
    if len(models) == 1:
        return model
    return min(models, key=lambda each: _miss(model.rtt_ns, both.result, modelled(each, both, seed)))


def _miss(rtt_ns: int, want: PhaseResult, have: PhaseResult) -> float:
    """By which part a model misses at most."""
    base_ms = rtt_ns / 1e6
    pairs: list[tuple[float | None, float | None]] = [
        (each, have.goodput_mbit.get(way)) for way, each in want.goodput_mbit.items()
    ]
    pairs += [(_added(want.p50_ms, base_ms), _added(have.p50_ms, base_ms))]
    pairs += [(_added(want.p95_ms, base_ms), _added(have.p95_ms, base_ms))]
    return max(abs(1 - _ratio(*pair)) for pair in pairs) + _lost_apart(want, have)


def _lost_apart(want: PhaseResult, have: PhaseResult) -> int:
    """1 if one loses many probes, and the other does not."""
    return int((want.p95_ms is None, want.p50_ms is None) != (have.p95_ms is None, have.p50_ms is None))


def modelled(model: LineModel, phase: MeasuredPhase, seed: int = 1) -> PhaseResult:
    """The numbers of a phase in a simulation."""
    longer_s = max(ANSWERED_S, 2 * (phase.result.p95_ms or 0) / 1000)
    run = Simulation(text(model, phase.kind, phase.load_s, longer_s), seed=seed).finish()
    return result(run, phase.kind, phase.load_s, phase.trips)


def result(run: MemoryRun, kind: PhaseKind, load_s: float, of: Trips = "probes") -> PhaseResult:
    """The numbers of a simulated phase, over the same times as those of a measured one."""
    begin = round(IDLE_S * SECOND)
    steady, end = begin + round(min(load_s / 5, 2.0) * SECOND), begin + round(load_s * SECOND)
    lost = None
    if of == "flows":
        found = run.flows.filter(pl.col("t_ns").is_between(steady, end))["srtt_ns"].drop_nulls()
    else:
        found = run.probes.filter((pl.col("probe") == "ping") & pl.col("sent_ns").is_between(begin, end))["rtt_ns"]
        lost = found.null_count() / max(len(found), 1)
    values = [found.fill_null(2**62).quantile(part, "linear") for part in (0.5, 0.95)]
    known = [None if value is None or value > 1e15 else value / 1e6 for value in values]
    rates = {way: _goodput(run, way, steady, end) for way in LOADS[kind]}
    return PhaseResult(known[0], known[1], rates, lost)


def _goodput(run: MemoryRun, way: Direction, begin: int, end: int) -> float:
    name = {"up": "upload", "down": "download"}[way]
    rows = run.flows.filter(pl.col("flow").str.starts_with(f"{name}/") & pl.col("t_ns").is_between(begin, end))
    each = rows.group_by("flow").agg(
        bits=8 * (pl.col("delivered_bytes").last() - pl.col("delivered_bytes").first()),
        seconds=(pl.col("t_ns").last() - pl.col("t_ns").first()) / SECOND,
    )
    return float(sum(bits / seconds / 1e6 for _, bits, seconds in each.rows() if seconds))


def _first(line: MeasuredLine) -> LineModel:
    """The model before any simulation."""
    queues: dict[Direction, ModelledQueue] = {}
    for way in ("up", "down"):
        found = line.directions.get(way)
        if found is None:
            queues[way] = ModelledQueue(UNMEASURED_BPS, MANAGED, None, is_known=False)
            continue
        full_ns, is_known = found.queue.full_ns, found.queue.kind != "unknown"
        if full_ns is None:
            queue = ModelledQueue(found.frame_bps, MANAGED, None, is_known, found.steps)
        else:
            limit = max(round(found.frame_bps / 8 * full_ns / 1e9), LEAST_LIMIT)
            queue = ModelledQueue(found.frame_bps, TAIL_DROP, limit, is_known, found.steps)
        queues[way] = queue
    flows: Mapping[Direction, int] = {way: found.flows[0] for way, found in line.directions.items()}
    return LineModel(line.name, line.rtt_ns, line.jitter_ns, queues, flows, line.congestion, line.payload_share)


def _variants(model: LineModel, found: MeasuredDirection, way: Direction) -> Iterator[LineModel]:
    """Possible models of a direction.

    A limit in bytes has room for small packets when large ones do not fit, and one in packets has not. TCP's own ups
    and downs may be all that varies. Where the data do not show the kind of the queue, or the number of connections,
    each is tried.
    """
    queue = model.queues[way]
    kinds = (queue.qdisc,) if queue.limit_bytes is None else (TAIL_DROP, IN_PACKETS)
    for count in found.flows:
        for steps in dict.fromkeys([(), queue.steps]):
            each = replace(model, flows={**model.flows, way: count})
            for kind in kinds:
                yield replace(each, queues={**model.queues, way: replace(queue, qdisc=kind, steps=steps)})
            if found.queue.kind == "any":
                other = replace(queue, qdisc=MANAGED, limit_bytes=None, steps=steps)
                yield replace(each, queues={**model.queues, way: other})


def _varying(model: LineModel) -> list[Direction]:
    return [way for way, queue in model.queues.items() if queue.steps]


def _corrected(model: LineModel, phase: MeasuredPhase, way: Direction, seed: int) -> tuple[LineModel, float]:
    """The model after a few simulations of the phase that loads one direction alone, and by which part it misses."""
    want = phase.result
    base_ms = model.rtt_ns / 1e6
    best, least = model, float("inf")
    for _ in range(ROUNDS + 1):
        have = modelled(model, phase, seed)
        ratios = [_ratio(want.goodput_mbit.get(way), have.goodput_mbit.get(way))]
        ratios += [
            _ratio(_added(each, base_ms), _added(other, base_ms))
            for each, other in ((want.p50_ms, have.p50_ms), (want.p95_ms, have.p95_ms))
        ]
        miss = max(abs(1 - each) for each in ratios) + _lost_apart(want, have)
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


def worst(found: Sequence[HeldPhase]) -> HeldPhase:
    """The phase with the longest delay."""
    return max(found, key=lambda each: each.measured.p95_ms or float("inf"))
