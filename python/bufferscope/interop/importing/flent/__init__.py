"""A data file of Flent (`.flent.gz`; format 4, and older ones): `metadata`, `x_values`, `results` and `raw_values`.

Rates of its flows and round trips become flows and probes; the names of their parts are those that bufferscope gives
its own tests (`rrul.up.be`, `rrul.ping`), so that both are compared metric by metric. `series` says what a series is,
`values` reads its values, and `file` takes the file apart.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bufferscope.base.errors import printable
from bufferscope.interop.external_runs import traffic_name
from bufferscope.interop.importing.content import Unusable
from bufferscope.interop.importing.flent import series as naming
from bufferscope.interop.importing.flent.file import MOST_MSS_BYTES, DataFile, Series
from bufferscope.interop.importing.flent.series import SeriesKind, base_of, kind_of
from bufferscope.interop.importing.flent.values import READ_STATE, acknowledged, has_rates, probes, samples
from bufferscope.interop.importing.result import Reading, Sample
from bufferscope.interop.importing.values import LONGEST_NS, mapping, number, text, whole

MOST_NAMED = 8
"""Series that a warning names; of more, it gives the number."""
_OWN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}(/\d{1,6})?")


def recognises(content: Any) -> bool:
    """Whether a JSON value comes from Flent or netperf-wrapper."""
    return isinstance(content, dict) and "x_values" in content and "metadata" in content


def read(content: Any) -> Reading:
    """The series as flows and probes; raises `Unusable`."""
    file = DataFile(content)
    own = _Own(mapping(file.metadata.get("BUFFERSCOPE") or {}, "metadata.BUFFERSCOPE"))
    tool = "flent" if "FLENT_VERSION" in file.metadata else "netperf-wrapper"
    known = text(file.metadata.get("FLENT_VERSION")) or text(file.metadata.get("NETPERF_WRAPPER_VERSION"))
    found = Reading("bufferscope" if own.content else tool, known.removeprefix("bufferscope "), clock=True)
    test = text(file.metadata.get("NAME"), "flent")
    found.title = " - ".join(part for part in (f"{test} (Flent)", text(file.metadata.get("TITLE"))) if part)
    found.interval_ns = file.step_ns
    found.mss_bytes = own.mss_bytes or file.mss_bytes
    _Taker(file, own, traffic_name(test), found).take()
    own.apply(file.t0_ns, found)
    return found


class _Own:
    """What only files have that bufferscope wrote: the key `BUFFERSCOPE` of their metadata."""

    def __init__(self, content: Mapping[str, object]) -> None:
        self.content = content
        self._names = mapping(content.get("series") or {}, "metadata.BUFFERSCOPE.series")
        self.mss_bytes = min(whole(content.get("mss_bytes")) or 0, MOST_MSS_BYTES)

    def name(self, series: str) -> str | None:
        """The name that a flow or a probe had in bufferscope."""
        found = text(self._names.get(series))
        return found if _OWN.fullmatch(found) else None

    def apply(self, t0_ns: int, found: Reading) -> None:
        """The times of the run, of its warm-up and of its load."""
        duration_ns, warmup_ns = whole(self.content.get("duration_ns")), whole(self.content.get("warmup_ns"))
        if duration_ns is None or not 0 < duration_ns <= LONGEST_NS:
            return
        found.begin_ns, found.end_ns = t0_ns, t0_ns + duration_ns
        found.loaded_ns = t0_ns + min(warmup_ns or 0, duration_ns)
        unloaded_ns = whole(self.content.get("unloaded_ns"))
        if unloaded_ns is not None:
            found.unloaded_ns = t0_ns + min(unloaded_ns, duration_ns)


@dataclass
class _Left:
    """The series of which nothing was made, by the reason."""

    unknown: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    interpolated: list[str] = field(default_factory=list)
    means: list[str] = field(default_factory=list)
    ways: list[str] = field(default_factory=list)
    states: dict[str, int] = field(default_factory=dict)
    passed: list[tuple[str, int]] = field(default_factory=list)
    """Uploads of which only the bytes are known that were passed to the sockets."""
    buffered: list[tuple[str, int]] = field(default_factory=list)
    """Uploads of which it is known how many bytes were left in the socket when the load ended."""


class _Taker:
    """Puts every series in its place."""

    def __init__(self, file: DataFile, own: _Own, test: str, found: Reading) -> None:
        self.file, self.own, self.test, self.found = file, own, test, found
        self.loads: dict[tuple[str, bool, str], list[tuple[Series, Sequence[Sample]]]] = {}
        self.left = _Left()
        self.names: dict[str, int] = {}
        """How many entries wanted each name."""

    def take(self) -> None:
        """All series, and what is to be said of them."""
        for name in self.file.names:
            series = self.file.series(name)
            match kind_of(series, self.file):
                case SeriesKind.RATE:
                    self._rate(series)
                case SeriesKind.ROUND_TRIPS:
                    self._round_trips(series)
                case SeriesKind.PART:
                    self._part(series)
                case SeriesKind.OTHER:
                    self.left.unknown.append(_described(series))
                case _:
                    pass
        self._load()
        if not self.found.flows and not self.found.probes and self.left.unknown:
            raise Unusable(
                f"found no rate of a flow and no round trip in this test of Flent, {self.test}; its series are: "
                f"{_some(self.left.unknown)}"
            )
        self.found.warnings += _warnings(self.left, self.found, own=bool(self.own.content))

    def _has_values(self, series: Series) -> bool:
        return bool(series.keys) or any(True for _ in self.file.interpolated(series.name))

    def _rate(self, series: Series) -> None:
        found: Sequence[Sample] = samples(self.file, series, self.found.mss_bytes)
        if not any(sample.delivered_bytes is not None for sample in found):
            self.left.empty.append(series.name)
            return
        up = naming.is_upload(series, self.test)
        if up is None:
            self.left.ways.append(series.name)
        if not has_rates(self.file, series):
            self.left.interpolated.append(series.name)
        way = up is not False
        if way and not self.own.content and series.units.lower() != "bits/s":
            mean_mbit = number(self.file.meta(series.name).get("MEAN_VALUE"))
            found, left = acknowledged(found, mean_mbit)
            (self.left.passed if mean_mbit is None else self.left.buffered).append((series.name, left))
        own = self.own.name(series.name)
        entry = own.rpartition("/")[0] if own else naming.flow_name(series, self.test, up=way)
        self.loads.setdefault((entry, way, naming.protocol(series)), []).append((series, found))

    def _round_trips(self, series: Series) -> None:
        found = probes(self.file, series)
        if not found:
            self.left.empty.append(series.name)
            return
        if not series.keys:
            self.left.interpolated.append(series.name)
        if "dur" in series.keys:
            self.left.means.append(series.name)
        name = self._free(self.own.name(series.name) or naming.probe_name(series, self.test))
        self.found.ping(name, found, "irtt" if naming.over_udp(series) else "ping")

    def _part(self, series: Series) -> None:
        """A part of a flow's raw values is read with them, or named."""
        base, key = base_of(series.name)
        is_read = key in READ_STATE and key in self.file.series(base).keys
        if key.startswith("tcp_") and not is_read and self._has_values(series):
            self.left.states[key] = self.left.states.get(key, 0) + 1

    def _load(self) -> None:
        """The flows, those of one entry together, and when the first of them began and the last one ended."""
        for (entry, up, protocol), parts in self.loads.items():
            algorithms = {series.congestion for series, _ in parts if series.congestion}
            settings = {"congestion": algorithms.pop()} if len(algorithms) == 1 else {}
            self.found.load(self._free(entry), protocol, [flow for _, flow in parts], up=up, **settings)
        counted = [
            sample.t_ns for flow in self.found.flows.values() for sample in flow if sample.delivered_bytes is not None
        ]
        if counted:
            self.found.loaded_ns, self.found.unloaded_ns = min(counted), max(counted)

    def _free(self, name: str) -> str:
        """The name, or a similar one if it is taken."""
        number = self.names[name] = self.names.get(name, 0) + 1
        return name if number == 1 else self._free(f"{name}-{number}")


def _warnings(left: _Left, found: Reading, *, own: bool) -> Iterable[str]:
    if left.interpolated:
        yield f"only values that Flent interpolated, no raw ones: {_some(left.interpolated)}"
    if left.means and not own:
        yield (
            "netperf's round trips are means over its intervals, not single probes, and it does not count lost ones: "
            f"{_some(left.means)}"
        )
    if left.unknown:
        yield f"series that are neither a flow's rate nor round trips, and were left out: {_some(left.unknown)}"
    if left.states:
        states = [f"{key} of {count} series" for key, count in left.states.items()]
        yield f"state of sockets that was left out: {_some(states)}"
    if left.empty:
        yield f"series without any value, of parts of the test that failed: {_some(left.empty)}"
    if left.ways:
        yield f"flows whose direction the file does not say, taken to be uploads: {_some(left.ways)}"
    if left.passed:
        yield "goodput of uploads counts the bytes that were passed to the sockets, as netperf does"
    elif left.buffered:
        mbyte = sum(count for _, count in left.buffered) / 1e6
        yield f"goodput of uploads is without the {mbyte:.3g} MB that netperf still had in send buffers at the end"


def _described(series: Series) -> str:
    """The name, the unit and what measured it: `HTTP latency (ms, HttpGetterRunner)`."""
    known = ", ".join(word[:30] for word in (series.units, series.runner) if word)
    return f"{series.name[:60]} ({known})" if known else series.name[:60]


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(printable(name)[:100] for name in names[:MOST_NAMED])
    return shown if len(names) <= MOST_NAMED else f"{shown} and {len(names) - MOST_NAMED} more"
