"""What a file says, before it becomes a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from bufferscope import _core
from bufferscope.interop.external_runs import TrafficEntry
from bufferscope.interop.importing import budget

HALF, ROUND = 1 << 15, 1 << 16
"""ICMP's sequence numbers have 16 bits."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe, as in the table `probes`."""

    seq: int
    sent_ns: int
    rtt_ns: int | None
    owd_up_ns: int | None = None
    owd_down_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of a flow, as in the table `flows`; what is not known is None."""

    t_ns: int
    delivered_bytes: int | None = None
    retransmits: int | None = None
    lost: int | None = None
    cwnd_bytes: int | None = None
    srtt_ns: int | None = None


@dataclass
class Reading:
    """What a file says. Times are the program's own: since 1970 if it wrote the date, otherwise since any moment."""

    tool: str
    version: str = ""
    title: str = ""
    clock: bool = False
    """Whether times are since 1970."""
    traffic: list[TrafficEntry] = field(default_factory=list)
    probes: dict[str, Sequence[Probe]] = field(default_factory=dict)
    """By the name of their entry."""
    flows: dict[str, Sequence[Sample]] = field(default_factory=dict)
    """By their name: that of the entry, a slash, and a number from 1."""
    loaded_ns: int | None = None
    """When the load began, if the test waited before it: metrics begin then."""
    unloaded_ns: int | None = None
    """When the load ended, if the test went on without it: metrics end then."""
    begin_ns: int | None = None
    end_ns: int | None = None
    """When the run began and ended, if the file says so; otherwise with the first and the last observation."""
    interval_ns: int = 1_000_000_000
    """The time between two samples of a flow."""
    mss_bytes: int = _core.MSS_BYTES
    part: int = 0
    """Which of the file's tests it is, from 1 on; 0 if there is only one."""
    reported: dict[str, float | str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def ping(self, name: str, probes: Sequence[Probe], kind: str = "ping", /, **settings: object) -> None:
        """Add an entry that measured round trips.

        No packet takes no time: a program prints 0 if its clock was set back, or if it writes a loss so. Such probes
        are left out.
        """
        probes = self._without_zeros(name, probes)
        interval_ns = typical_interval_ns(probes)
        known: Mapping[str, object] = {"interval_ns": interval_ns} if interval_ns else {}
        self.traffic.append(TrafficEntry(name, kind, "near", "far", {**known, **settings}))
        self.probes[name] = probes

    def _without_zeros(self, name: str, probes: Sequence[Probe]) -> Sequence[Probe]:
        kept = [probe for probe in probes if probe.rtt_ns != 0]
        if count := len(probes) - len(kept):
            self.warnings.append(
                f"round trips of 0 of {name}, as of a clock that was set back or of a probe that was lost, which are "
                f"left out: {count}"
            )
        return kept

    def new_name(self, name: str) -> str:
        """The name, or one like it that no entry has."""
        return name if name not in self.probes else f"{name}-{len(self.probes)}"

    def load(self, name: str, kind: str, flows: Sequence[Sequence[Sample]], *, up: bool, **settings: object) -> None:
        """Add an entry of flows from the near end to the far one (`up`), or the other way."""
        ends = ("near", "far") if up else ("far", "near")
        self.traffic.append(TrafficEntry(name, kind, *ends, {"flows": len(flows), **settings}))
        self.flows |= {f"{name}/{number}": samples for number, samples in enumerate(flows, start=1)}


def typical_interval_ns(probes: Sequence[Probe]) -> int | None:
    """The median time between two probes that follow one another; None if there are fewer than two."""
    times = sorted(probe.sent_ns for probe in probes)
    steps = sorted(later - earlier for earlier, later in pairwise(times))
    return steps[len(steps) // 2] or None if steps else None


def unwrapped(numbers: Sequence[int]) -> list[int]:
    """Sequence numbers of 16 bits in the order of time, continued beyond them.

    >>> unwrapped([65534, 65535, 1, 0])
    [65534, 65535, 65537, 65536]
    """
    found: list[int] = []
    for seq in numbers:
        turns = 0 if not found else (found[-1] - seq + HALF) // ROUND
        found.append(seq + ROUND * max(0, turns))
    return found


def with_missing(
    known: Sequence[Probe], first: int | None = None, last: int | None = None, interval_ns: int = 0
) -> list[Probe]:
    """These probes and those that are missing between them, and from `first` to `last`, as lost ones; of doubles, one.

    A missing probe is taken to have been sent between its neighbours, at equal intervals; outside of them, at intervals
    of `interval_ns`. Raises `Unusable` if more are missing than any test loses.
    """
    probes = {probe.seq: probe for probe in reversed(known)}
    if not probes:
        if first is None or last is None or last < first:
            return []
        probes = {first: Probe(first, 0, None)}
    order = sorted(probes)
    begin, end = (
        min(order[0], order[0] if first is None else first),
        max(order[-1], order[-1] if last is None else last),
    )
    where = f"found {len(order)} probes with sequence numbers from {begin} to {end}"
    budget.current().missing(end - begin + 1 - len(order), where)
    earliest, latest = probes[order[0]], probes[order[-1]]
    found = [_missing(seq, earliest, interval_ns) for seq in range(begin, order[0])]
    for seq, following in zip(order, [*order[1:], None], strict=True):
        found.append(probes[seq])
        if following is not None:
            step_ns = (probes[following].sent_ns - probes[seq].sent_ns) // (following - seq)
            found += [_missing(lost, probes[seq], step_ns) for lost in range(seq + 1, following)]
    return found + [_missing(seq, latest, interval_ns) for seq in range(order[-1] + 1, end + 1)]


def _missing(seq: int, known: Probe, interval_ns: int) -> Probe:
    """A lost probe, sent at this interval from a known one."""
    return Probe(seq, known.sent_ns + (seq - known.seq) * interval_ns, None)
