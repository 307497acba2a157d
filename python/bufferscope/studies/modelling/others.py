"""What a measurement of another program shows of a line: a test of Flent, a capture, a log of ping with given rates.

Such a file has less than a live measurement. What it does not show is said in a note, and never guessed: without
one-way delays, a test that loads both directions shows only the sum of their two queues.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from bufferscope.analysis.findings import LEAST_ADDED_MS
from bufferscope.analysis.fixing.located import NAMES
from bufferscope.analysis.fixing.rates import FEWEST, MARGIN, RAMP_S, RECOVERY, TCP_HEADERS, UNCERTAIN, VARYING
from bufferscope.base.errors import InputError
from bufferscope.metrics.paths import INSTANT_NS
from bufferscope.metrics.records import RunRecords
from bufferscope.metrics.window import Window, idle_times, window
from bufferscope.model.network import traffic_named
from bufferscope.store.verdict import Direction, PhaseKind
from bufferscope.studies.modelling.line import LOADS, MANAGED
from bufferscope.studies.modelling.measured import (
    CONTROLS,
    DEFAULT_CONTROL,
    ETHERNET,
    LEAST_BPS,
    SECOND,
    MeasuredDirection,
    MeasuredLine,
    MeasuredPhase,
    PhaseResult,
    QueueEvidence,
    Trips,
    jitter_of,
)

FEWEST_PROBES = 5
"""Answered probes of the idle path that have a median."""
ENOUGH_PROBES = 20
"""Answered probes of the idle path that have a 95th percentile."""
SMALL = 0.05
"""A flow or a direction with less than this part of the largest one's bytes is no load."""
TOGETHER = 0.5
"""Directions that share this part of the shorter one's time are loaded at once."""
LONGEST_S = 30.0
"""The longest load that is simulated: a longer file shows no more of a line."""
MOST_BINS = 3600
"""More seconds are not looked at: a file may claim to be of a year."""
SHORTEST_S = 3.0
"""A shorter load has no steady part."""
LEAST_OWN_NS, APART = 3_000_000, 3
"""Flow queueing keeps the load's own packets waiting for at least this time, and this many times as long as probes."""
LEAST_MBIT, MOST_MBIT = 0.01, 100_000
ONLY: Mapping[Direction, PhaseKind] = {"down": "download", "up": "upload"}
"""What is loaded if only one direction is."""
POSSIBLE_FLOWS = (1, 2, 4, 8)
"""The numbers of connections that are tried if the data do not show them."""


@dataclass(frozen=True)
class GivenRates:
    """What a user says of a line whose data show round trips only."""

    mbit: Mapping[Direction, float]
    """The rates of the line, in Mbit/s."""
    loaded: PhaseKind | None = None
    """What was loaded; None if the rates show it, because there is only one."""


def given_rates(down_mbit: float | None, up_mbit: float | None, loaded: str | None = None) -> GivenRates | None:
    """The rates of a line, in Mbit/s, and what was loaded. Raises `InputError` for a rate that no line has."""
    mbit: dict[Direction, float] = {}
    for way, rate in (("down", down_mbit), ("up", up_mbit)):
        if rate is None:
            continue
        if not LEAST_MBIT <= rate <= MOST_MBIT:
            raise InputError(f"--{way}: found {rate:g}; allowed: {LEAST_MBIT:g} to {MOST_MBIT:g} Mbit/s")
        mbit[way] = rate  # type: ignore[index]
    return GivenRates(mbit, loaded) if mbit else None  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Load:
    """What one direction carried."""

    way: Direction
    flows: pl.DataFrame
    names: tuple[str, ...]
    begin_ns: int
    end_ns: int

    @property
    def steady_ns(self) -> int:
        """When its steady part begins."""
        whole_s = (self.end_ns - self.begin_ns) / SECOND
        return self.begin_ns + round(min(whole_s / 5, RAMP_S) * SECOND)

    def rates(self, length_s: float) -> list[float]:
        """The goodput of each bin of the steady part, in bit/s."""
        length = max(round(length_s * SECOND), 1)
        count = min((self.end_ns - self.steady_ns) // length, MOST_BINS)
        edges = self.steady_ns + length * np.arange(count + 1)
        total = np.zeros(len(edges))
        for name in self.names:
            own = self.flows.filter(flow=name)
            total += np.interp(edges, own["t_ns"].to_numpy(), own["delivered_bytes"].to_numpy())
        return [float(each) for each in np.diff(total) * 8 / length_s]

    @property
    def goodput_bps(self) -> float:
        """The mean of the steady part."""
        rates = self.rates((self.end_ns - self.steady_ns) / SECOND)
        return rates[0] if rates else 0.0


def of_other(
    run: RunRecords,
    ways: Mapping[str, Direction] | None = None,
    given: GivenRates | None = None,
    known: Sequence[str] = (),
) -> MeasuredLine:
    """What a run shows that another program measured.

    `ways` has the direction of each flow of a capture; None: they follow from the run's traffic, whose near end sends
    the probes. Pings of a capture are not used, because between the ends they show only a part of the path. `known`
    are notes on the directions. Raises `InputError` if the run has too little for a model.
    """
    loads = list(_loads(run, _ways(run) if ways is None else ways))
    if not loads and ways is not None:
        raise InputError(f"{run.id}: found no TCP flow that carried data for {SHORTEST_S:g} s, so there is no model")
    if not loads:
        return _of_probes(run, given)
    if given and given.mbit:
        raise InputError(f"{run.id}: found rates of flows; --down and --up are for files without them")
    probe = _probe(run) if ways is None else None
    name, notes = f"of {run.meta['experiment']}", list(known)
    if probe is None:
        notes.append(
            f"{run.meta['experiment']} has no separate probes: round trips are those of the load itself, and whether "
            "other traffic waits behind it is not known."
        )
    rtt_ns, jitter_ns = _idle(run, probe, min(load.begin_ns for load in loads), notes)
    controls = {str(entry["congestion"]) for entry in traffic_named(run.scenario, "tcp") if entry.get("congestion")}
    congestion = next((each for each in controls if len(controls) == 1 and each in CONTROLS), None)
    if congestion is None:
        notes.append(f"The congestion control is not known: the model has {DEFAULT_CONTROL}.")
    phases, directions = [], dict[Direction, MeasuredDirection]()
    share = _share(run)
    for kind, together in _phases(loads):
        trips: Trips = "flows" if probe is None else "probes"
        begin, end = max(load.begin_ns for load in together), min(load.end_ns for load in together)
        times = _trips(run, probe, together, begin, end)
        if ways is not None and not _shows_path(times):
            raise InputError(
                f"{run.id}: found no round trips of the whole path: the capture was made at the receiver of packets "
                "without timestamps. Capture at the sender"
            )
        result = _result(
            times,
            {load.way: load.goodput_bps / 1e6 for load in together},
            trips,
        )
        phases.append(MeasuredPhase(kind, min((end - begin) / SECOND, LONGEST_S), result, trips))
        for load in together:
            evidence = _evidence(run, kind, load, times, rtt_ns, probe)
            directions[load.way] = _direction(load, result, evidence, share)
    return MeasuredLine(
        name, rtt_ns, jitter_ns, congestion or DEFAULT_CONTROL, share, directions, tuple(phases), tuple(notes)
    )


def _of_probes(run: RunRecords, given: GivenRates | None) -> MeasuredLine:
    """A line of which only round trips were measured."""
    probe = _probe(run)
    if probe is None:
        raise InputError(f"{run.id}: found neither a flow nor a probe that was answered, so there is no model")
    if given is None or not given.mbit:
        raise InputError(f"{run.id}: found only round trips; give the rates of the line, in Mbit/s: --down 50 --up 10")
    kind = given.loaded or (ONLY[next(iter(given.mbit))] if len(given.mbit) == 1 else None)
    if kind is None or kind == "both" or not set(LOADS[kind]) <= set(given.mbit):
        raise InputError(
            f"{run.id}: round trips do not show which direction was loaded; allowed: --phase download with --down, or "
            "--phase upload with --up"
        )
    (way,) = LOADS[kind]
    loaded = window(run.scenario)
    notes = [
        "The rates are those of the command line, not measured.",
        f"The connections of the load are not known: the model has {DEFAULT_CONTROL}, and the number of them that fits "
        "best.",
    ]
    rtt_ns, jitter_ns = _idle(run, probe, loaded.start_ns, notes)
    times = _answers(run, probe, loaded)
    result = _result(times, {}, "probes")
    frame_bps = given.mbit[way] * 1e6
    evidence = _of_added(_added_ns(times, rtt_ns), None, way)
    direction = MeasuredDirection(
        frame_bps, is_given=True, steps=(), queue=evidence, flows=POSSIBLE_FLOWS, shaper_bps=frame_bps * _less(way, 0.0)
    )
    seconds = min(max(loaded.seconds, SHORTEST_S), LONGEST_S)
    phase = MeasuredPhase(kind, seconds, result, "probes")
    return MeasuredLine(
        f"of {run.meta['experiment']}",
        rtt_ns,
        jitter_ns,
        DEFAULT_CONTROL,
        _share(run),
        {way: direction},
        (phase,),
        tuple(notes),
    )


def _ways(run: RunRecords) -> dict[str, Direction]:
    """The direction of each flow, by the run's traffic."""
    entries = list(traffic_named(run.scenario, "tcp"))
    probers = list(traffic_named(run.scenario, "ping", "irtt"))
    near = next((entry["from"] for entry in (*probers, *entries)), None)
    by_name: dict[str, Direction] = {entry["name"]: "up" if entry["from"] == near else "down" for entry in entries}
    flows = run.flows["flow"].unique().to_list()
    return {flow: by_name[name] for flow in flows if (name := flow.rpartition("/")[0]) in by_name}


def _loads(run: RunRecords, ways: Mapping[str, Direction]) -> Iterator[_Load]:
    """What each direction carried, without what is small beside the rest."""
    rows = run.flows.select("flow", "t_ns", "delivered_bytes").drop_nulls().sort("t_ns")
    gained = {
        flow: last - first
        for flow, first, last in rows.group_by("flow")
        .agg(first=pl.col("delivered_bytes").first(), last=pl.col("delivered_bytes").last())
        .iter_rows()
        if flow in ways
    }
    found: list[tuple[int, _Load]] = []
    for way in ("down", "up"):
        own = {flow: count for flow, count in gained.items() if ways[flow] == way}
        names = tuple(sorted(flow for flow, count in own.items() if count >= SMALL * max(own.values()) and count > 0))
        if names:
            mine = rows.filter(pl.col("flow").is_in(names))
            begin, end = mine["t_ns"][0], mine["t_ns"][-1]
            if end - begin >= SHORTEST_S * SECOND:
                found.append((sum(own.values()), _Load(way, mine, names, begin, end)))
    most = max((count for count, _ in found), default=0)
    return (load for count, load in found if count >= SMALL * most)


def _phases(loads: Sequence[_Load]) -> Iterator[tuple[PhaseKind, list[_Load]]]:
    """Which directions were loaded at once."""
    if len(loads) > 1:
        shared = min(each.end_ns for each in loads) - max(each.begin_ns for each in loads)
        if shared > TOGETHER * min(each.end_ns - each.begin_ns for each in loads):
            yield "both", list(loads)
            return
    for load in loads:
        yield ONLY[load.way], [load]


def _probe(run: RunRecords) -> str | None:
    """The probe that was answered most often."""
    counts = run.probes.drop_nulls("rtt_ns").group_by("probe").len().sort("len", "probe", descending=[True, False])
    return None if counts.is_empty() else str(counts["probe"][0])


def _answers(run: RunRecords, probe: str, during: Window) -> pl.Series:
    """The round trips of a probe in a time, null if they were lost."""
    return during.rows(run.probes.filter(probe=probe), "sent_ns")["rtt_ns"]


def _trips(run: RunRecords, probe: str | None, loads: Sequence[_Load], begin: int, end: int) -> pl.Series:
    """The round trips of a phase: those of a probe, or else the smoothed ones of the connections."""
    if probe is not None:
        return _answers(run, probe, Window(begin, end))
    names = [name for load in loads for name in load.names]
    steady = Window(max(load.steady_ns for load in loads), end)
    return steady.rows(run.flows.filter(pl.col("flow").is_in(names)))["srtt_ns"].drop_nulls()


def _shows_path(times: pl.Series) -> bool:
    """Whether the round trips of a capture are those of a path, and not of its receiver alone."""
    longest = times.quantile(0.95, "linear")
    return longest is not None and longest > INSTANT_NS


def _idle(run: RunRecords, probe: str | None, loaded_ns: int, notes: list[str]) -> tuple[int, int]:
    """The round trip of the idle path, and its jitter: of the time before and after the load, or else the least one."""
    least: object = None
    if probe is None:
        least = run.flows["min_rtt_ns"].drop_nulls().min()
        if least is None:
            least = run.flows["srtt_ns"].drop_nulls().min()
    else:
        own = run.probes.filter(probe=probe).drop_nulls("rtt_ns")
        outside = [each for each in idle_times(run.scenario) if each.end_ns > each.start_ns]
        idle = pl.concat([each.rows(own, "sent_ns")["rtt_ns"] for each in outside] or [own["rtt_ns"].head(0)])
        if len(idle) < FEWEST_PROBES:
            idle = own.filter(pl.col("sent_ns") < loaded_ns)["rtt_ns"]
        if len(idle) >= FEWEST_PROBES:
            p50, p95 = (round(float(each)) for each in np.quantile(idle.to_numpy(), (0.5, 0.95)))
            return p50, jitter_of(p50, p95) if len(idle) >= ENOUGH_PROBES else 0
        least = own["rtt_ns"].min()
    if not isinstance(least, int):
        raise InputError(f"{run.id}: found no round trip, so there is no model")
    notes.append(
        f"{run.meta['experiment']} has no idle path: the least round trip ({least / 1e6:.3g} ms) is taken for it, "
        "without jitter."
    )
    return least, 0


def _result(times: pl.Series, goodput_mbit: dict[Direction, float], trips: Trips) -> PhaseResult:
    lost = times.null_count() / max(len(times), 1) if trips == "probes" else None
    return PhaseResult(_percentile(times, 0.5), _percentile(times, 0.95), goodput_mbit, lost)


def _percentile(times: pl.Series, part: float) -> float | None:
    """A percentile in ms, in which lost probes are infinitely long; None among those."""
    value = times.cast(pl.Int64).fill_null(2**62).quantile(part, "linear")
    return None if value is None or value > 1e15 else float(value) / 1e6


def _added_ns(times: pl.Series, rtt_ns: int) -> int | None:
    """The delay of a full queue: the 99th percentile of what was answered."""
    value = times.drop_nulls().quantile(0.99, "linear")
    return None if value is None else max(round(float(value)) - rtt_ns, 0)


def _evidence(
    run: RunRecords, kind: PhaseKind, load: _Load, times: pl.Series, rtt_ns: int, probe: str | None
) -> QueueEvidence:
    added = _added_ns(times, rtt_ns)
    if kind == "both":
        known = "" if added is None else f", {added / 1e6:.3g} ms (p99)"
        return QueueEvidence(
            "unknown",
            note=f"The queues are not known: both directions are loaded at once, which shows only the sum of their "
            f"delays{known}. The model has {MANAGED} in both. Tests of each direction alone show the queues: "
            "bufferscope model UPLOAD DOWNLOAD BOTH.",
        )
    own = None
    if probe is not None:
        srtt = load.flows.head(0)["t_ns"] if "srtt_ns" not in run.flows.columns else _trips(run, None, [load], 0, 2**62)
        own = None if srtt.is_empty() else round(float(np.median(srtt.to_numpy()))) - rtt_ns
    return _of_added(added, own, load.way)


def _of_added(added_ns: int | None, own_ns: int | None, way: Direction) -> QueueEvidence:
    """A queue by the delay that it adds to probes, and to the load's own packets."""
    least_ns = LEAST_ADDED_MS * 1_000_000
    if added_ns is not None and added_ns >= least_ns:
        return QueueEvidence("any", added_ns)
    if own_ns is not None and own_ns >= max(LEAST_OWN_NS, APART * (added_ns or 0)):
        return QueueEvidence("managed")
    return QueueEvidence(
        "unknown",
        note=f"The {way} queue is not known: the {NAMES[way]} adds less than {LEAST_ADDED_MS} ms. The model has "
        f"{MANAGED} there.",
    )


def _direction(load: _Load, result: PhaseResult, evidence: QueueEvidence, share: float) -> MeasuredDirection:
    rates = load.rates(max(1.0, RECOVERY * (result.p50_ms or 0) / 1000))
    variation = float(np.std(rates) / np.mean(rates)) if len(rates) >= FEWEST and np.mean(rates) > 0 else None
    varies = variation is not None and variation > VARYING
    seconds = load.rates(1.0)[: round(LONGEST_S)] if varies else []
    steps = tuple((float(at), max(each / share, LEAST_BPS)) for at, each in enumerate(seconds))
    base, unsure = (float(np.quantile(rates, 0.1)), 0.0) if variation is not None else (load.goodput_bps, UNCERTAIN)
    return MeasuredDirection(
        max(load.goodput_bps / share, LEAST_BPS),
        is_given=False,
        steps=steps,
        queue=evidence,
        flows=(len(load.names),),
        shaper_bps=None if varies else base / share * _less(load.way, unsure),
    )


def _less(way: Direction, unsure: float) -> float:
    return 1 - MARGIN[way] - unsure


def _share(run: RunRecords) -> float:
    """The part of a frame that is payload."""
    mss = run.meta["mss_bytes"]
    return mss / (mss + TCP_HEADERS[4] + ETHERNET)
