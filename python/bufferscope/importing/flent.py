"""A data file of Flent (`.flent.gz`; format 4, and older ones): `metadata`, `x_values`, `results` and `raw_values`.

Series of its TCP tests and pings become flows and probes; the names of their parts are those that bufferscope gives its
own tests (`rrul.up.be`, `rrul.ping`), so that both are compared metric by metric. Raw values are taken where there are
any: `results` are interpolated at fixed steps. A ping's time stamp is when the answer arrived. Netperf's values are
rates over intervals (`dur`), of what was passed to the socket (upload) or what arrived (download).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from bufferscope.importing.content import Unusable
from bufferscope.importing.result import Probe, Reading, Sample, unwrapped, with_missing
from bufferscope.importing.values import (
    LARGEST,
    LONGEST_NS,
    NANOSECONDS,
    mapping,
    mappings,
    milliseconds,
    nanoseconds,
    number,
    sequence,
    text,
    whole,
)
from bufferscope.observed import traffic_name

NEWEST = 4
COMPUTED = ("avg", "sum", "totals", "fairness", "diff")
"""The last words of series that Flent computes of others."""
MOST_SERIES = 2000
MOST_PACKETS = 1e9
"""No window holds more."""
DEFAULT_MSS_BYTES = 1448
"""Of Ethernet with time stamps, if the file does not tell."""
MOST_MSS_BYTES = 65_535
MBIT_BYTES = 1e6 / 8
_LOAD = re.compile(r"(?:TCP|UDP) (?P<way>upload|download|up|down)(?: |::|$)(?P<part>.*)")
_PING = re.compile(r"Ping \(ms\) ?(?P<part>.*)")
_OWN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}(/\d{1,6})?")


def recognises(content: Any) -> bool:
    """Whether a JSON value comes from Flent or netperf-wrapper."""
    return isinstance(content, dict) and "x_values" in content and "metadata" in content


def read(content: Any) -> Reading:
    """The series as flows and probes; raises `Unusable`."""
    whole_file = mapping(content, "the file")
    version = whole(whole_file.get("version", 1))
    if version is None or version > NEWEST:
        raise Unusable(f"version: found {whole_file.get('version')!r:.40}; allowed: at most {NEWEST}")
    file = _File(whole_file)
    tool = "flent" if "FLENT_VERSION" in file.metadata else "netperf-wrapper"
    known = text(file.metadata.get("FLENT_VERSION")) or text(file.metadata.get("NETPERF_WRAPPER_VERSION"))
    found = Reading("bufferscope" if file.own else tool, known.removeprefix("bufferscope "), clock=True)
    test = text(file.metadata.get("NAME"), "flent")
    found.title = " - ".join(part for part in (f"{test} (Flent)", text(file.metadata.get("TITLE"))) if part)
    found.interval_ns = file.step_ns
    _take(file, traffic_name(test), found)
    _take_own(file, found)
    return found


def _take_own(file: "_File", found: Reading) -> None:
    """What only files have that bufferscope wrote."""
    own = file.own
    duration_ns, warmup_ns = whole(own.get("duration_ns")), whole(own.get("warmup_ns"))
    if duration_ns is not None and 0 < duration_ns <= LONGEST_NS:
        found.begin_ns, found.end_ns = file.t0_ns, file.t0_ns + duration_ns
        found.loaded_ns = file.t0_ns + min(warmup_ns or 0, duration_ns)
    found.mss_bytes = file.mss_bytes


class _File:
    """The parts of a data file, checked."""

    def __init__(self, content: Mapping[str, object]) -> None:
        self.metadata = mapping(content.get("metadata"), "metadata")
        self.series_meta = mapping(self.metadata.get("SERIES_META") or {}, "metadata.SERIES_META")
        self.x_values = [number(x) for x in sequence(content.get("x_values"), "x_values")]
        self.results = mapping(content.get("results"), "results")
        self.raw = mapping(content.get("raw_values") or {}, "raw_values")
        if len(self.results) + len(self.raw) > MOST_SERIES:
            raise Unusable(f"found {len(self.results) + len(self.raw)} series; allowed: at most {MOST_SERIES}")
        self.step_ns = self._step_ns()
        self.t0_ns = self._t0_ns()
        self.own = mapping(self.metadata.get("BUFFERSCOPE") or {}, "metadata.BUFFERSCOPE")
        """What bufferscope adds to the files that it writes."""
        self._own_names = mapping(self.own.get("series") or {}, "metadata.BUFFERSCOPE.series")

    def _step_ns(self) -> int:
        given = nanoseconds(self.metadata.get("STEP_SIZE"))
        known = [x for x in self.x_values if x is not None]
        steps = [nanoseconds(later - earlier) for earlier, later in pairwise(known[:2])]
        return given or (steps[0] if steps and steps[0] else 0) or NANOSECONDS // 5

    def _t0_ns(self) -> int:
        """The time of x = 0; that of the test, where an old file lacks it."""
        for key in ("T0", "TIME"):
            if found := _date_ns(text(self.metadata.get(key))):
                return found
        return 0

    def own_name(self, series: str) -> str | None:
        """The name that a flow or a probe had in bufferscope, if the file was written by it."""
        found = text(self._own_names.get(series))
        return found if _OWN.fullmatch(found) else None

    @property
    def mss_bytes(self) -> int:
        """The payload of a full packet, as netperf or bufferscope wrote it down."""
        told = [whole(meta.get("TCP_MSS")) for meta in self.series_meta.values() if isinstance(meta, dict)]
        found = next((mss for mss in [whole(self.own.get("mss_bytes")), *told] if mss), DEFAULT_MSS_BYTES)
        return min(found, MOST_MSS_BYTES)

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys([*self.results, *self.raw]))

    def interpolated(self, name: str) -> Iterator[tuple[int, float]]:
        """The values of `results` with their times; what is missing is left out."""
        values = sequence(self.results.get(name) or [], f"results.{name}")
        for x, value in zip(self.x_values, values, strict=False):
            t_ns, known = nanoseconds(x), number(value)
            if t_ns is not None and known is not None:
                yield self.t0_ns + t_ns, known

    def raw_values(self, name: str) -> list[tuple[int, Mapping[str, object]]]:
        """The raw values of a series with their times, in order of time."""
        found = []
        for each in mappings(self.raw.get(name) or [], f"raw_values.{name}"):
            t_ns = nanoseconds(each.get("t"))
            if t_ns is not None:
                found.append((t_ns, each))
        return sorted(found, key=lambda pair: pair[0])


def _take(file: "_File", test: str, found: Reading) -> None:
    """Put every series in its place."""
    loads: dict[tuple[str, bool], list[tuple[str, list[Sample]]]] = {}
    left, interpolated = [], []
    for name in file.names:
        load, ping = _LOAD.fullmatch(name), _PING.fullmatch(name)
        part = (load or ping or {"part": ""})["part"]
        if part.split(" ")[-1] in COMPUTED or name.endswith(COMPUTED):
            continue
        if load and not part.startswith("tcp_"):
            up = load["way"].startswith("up")
            samples = _samples(file, name)
            if samples:
                own = file.own_name(name)
                entry = own.rpartition("/")[0] if own else _entry(test, up, part)
                loads.setdefault((entry, up), []).append((name, samples))
        elif ping and (probes := _probes(file, name)):
            found.ping(
                file.own_name(name) or _probe_name(test, part),
                probes,
                "irtt" if _over_udp(file, name, part) else "ping",
            )
        else:
            left.append(name)
        if not file.raw.get(name):
            interpolated.append(name)
    for (entry, up), series in loads.items():
        settings = _settings(file, series[0][0])
        found.load(
            entry, "udp" if series[0][0].startswith("UDP") else "tcp", [each for _, each in series], up=up, **settings
        )
    begins = [samples[0].t_ns for series in loads.values() for _, samples in series]
    if begins:
        found.loaded_ns = min(begins)
    _tell(found, left, interpolated, own=bool(file.own))


def _tell(found: Reading, left: Sequence[str], interpolated: Sequence[str], *, own: bool) -> None:
    if interpolated and (found.probes or found.flows):
        found.warnings.append(f"only values that Flent interpolated, no raw ones: {_some(interpolated)}")
    if left:
        found.warnings.append(f"series that bufferscope has no place for: {_some(left)}")
    if not own and any(entry.sender == "near" and entry.kind == "tcp" for entry in found.traffic):
        found.warnings.append("goodput of uploads counts the bytes that were passed to the sockets, as netperf does")


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(name[:60] for name in names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def _entry(test: str, up: bool, part: str) -> str:
    """`rrul.up.be` for `TCP upload BE`; numbered streams, as in `TCP upload::3`, are flows of one entry."""
    way = "up" if up else "down"
    own = re.sub(r"(^|::)\d+$", "", part)
    return ".".join([test, way, *([traffic_name(own)] if own else [])])


def _probe_name(test: str, part: str) -> str:
    """`rrul.udp.ef` for `Ping (ms) UDP EF`, and `rrul.ping` for `Ping (ms) ICMP`."""
    words = part.split()
    if words[:1] == ["UDP"]:
        return ".".join([test, "udp", *([traffic_name(" ".join(words[1:]))] if words[1:] else [])])
    rest = words[1:] if words[:1] == ["ICMP"] else words
    return ".".join([test, "-".join(["ping", *([traffic_name(" ".join(rest))] if rest else [])])])


def _over_udp(file: _File, name: str, part: str) -> bool:
    meta = file.series_meta.get(name)
    runner = text(meta.get("RUNNER")) if isinstance(meta, dict) else ""
    return part.startswith("UDP") or runner in ("IrttRunner", "UdpRttRunner")


def _settings(file: _File, name: str) -> dict[str, object]:
    """What the file says of a TCP connection."""
    meta = file.series_meta.get(name)
    algorithm = text(meta.get("CONG_CONTROL")) if isinstance(meta, dict) else ""
    used = algorithm.split(",")[0].strip()
    return {"congestion": used} if used else {}


def _probes(file: _File, name: str) -> list[Probe]:
    """A series of round trips; if its values are numbered, what is missing was lost."""
    raw = file.raw_values(name)
    if not raw:
        found = [(t_ns, milliseconds(value)) for t_ns, value in file.interpolated(name)]
        return [Probe(seq, max(0, t_ns - rtt), rtt) for seq, (t_ns, rtt) in enumerate(found) if rtt is not None]
    numbered = [whole(each.get("seq")) for _, each in raw]
    known = [seq for seq in numbered if seq is not None]
    numbers = unwrapped(known) if len(known) == len(raw) else list(range(len(raw)))
    probes = [_probe(seq, t_ns, each) for seq, (t_ns, each) in zip(numbers, raw, strict=True)]
    kept = [probe for probe, (_, each) in zip(probes, raw, strict=True) if probe.rtt_ns is not None or each.get("lost")]
    return with_missing(kept)


def _probe(seq: int, t_ns: int, each: Mapping[str, object]) -> Probe:
    rtt_ns = None if each.get("lost") else milliseconds(each.get("val"))
    if rtt_ns is None:
        return Probe(seq, t_ns, None)
    return Probe(
        seq, max(0, t_ns - rtt_ns), rtt_ns, milliseconds(each.get("owd_up")), milliseconds(each.get("owd_down"))
    )


def _samples(file: _File, name: str) -> list[Sample]:
    """A series of rates as a growing count of bytes; raises `Unusable` for an impossible one."""
    raw = file.raw_values(name)
    if not any(number(each.get("val")) is not None and nanoseconds(each.get("dur")) for _, each in raw):
        step_s = file.step_ns / NANOSECONDS
        raw = [(t_ns, {"val": rate, "dur": step_s}) for t_ns, rate in file.interpolated(name)]
    samples: list[Sample] = []
    total = 0.0
    for t_ns, each in raw:
        rate, dur_ns = number(each.get("val")), nanoseconds(each.get("dur"))
        counted = rate is not None and bool(dur_ns)
        if rate is not None and dur_ns:
            if not samples:
                samples.append(Sample(max(0, t_ns - dur_ns), 0))
            total += max(0.0, rate) * MBIT_BYTES * min(dur_ns, LONGEST_NS) / NANOSECONDS
            if total > LARGEST:
                raise Unusable(f"raw_values.{name:.60}: found {total:.3g} bytes")
        state = _state(each, file.mss_bytes)
        if counted or state:
            samples.append(Sample(t_ns, round(total) if counted else None, **state))
    return samples


def _state(each: Mapping[str, object], mss_bytes: int) -> dict[str, int]:
    """What `ss` said of the sender at that time (Flent's option `--socket-stats`): the window is in packets."""
    window, srtt_ns = number(each.get("tcp_cwnd")), milliseconds(each.get("tcp_rtt"))
    known = {
        "cwnd_bytes": None if window is None or not 0 <= window <= MOST_PACKETS else round(window * mss_bytes),
        "srtt_ns": srtt_ns,
        "retransmits": whole(each.get("tcp_retransmits")),
    }
    return {key: value for key, value in known.items() if value is not None}


def _date_ns(value: str) -> int | None:
    """A time as Flent writes it, which is in UTC; None if it is none."""
    try:
        moment = datetime.fromisoformat(value.removesuffix("Z"))
    except ValueError:
        return None
    return nanoseconds(moment.replace(tzinfo=UTC).timestamp())
