"""The parts of a data file of Flent, checked, and read alike from every version of the format."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from bufferscope.base.errors import printable
from bufferscope.interop.importing.content import Unusable
from bufferscope.interop.importing.values import (
    LARGEST,
    NANOSECONDS,
    mapping,
    mappings,
    nanoseconds,
    number,
    sequence,
    text,
    whole,
)

NEWEST = 4
TRANSFORMED = 4
"""From this version on, raw values have the unit of the results; before, that of the program that measured."""
MOST_SERIES = 2000
DEFAULT_MSS_BYTES = 1448
"""Of Ethernet with timestamps, if the file does not say."""
MOST_MSS_BYTES = 65_535
ZONE_NS = 900 * NANOSECONDS
"""Time zones differ by multiples of a quarter of an hour."""

Raw = list[tuple[int, Mapping[str, object]]]
"""Raw values with their times, in order of time."""


@dataclass(frozen=True)
class Series:
    """What a file says of one of its series, besides the values."""

    name: str
    runner: str
    """The class of Flent that measured it, such as `NetperfDemoRunner`; empty if it is not known."""
    units: str
    command: str
    congestion: str
    is_computed: bool
    """Whether Flent computed it from other series, by what the file says."""
    keys: frozenset[str]
    """The keys of its raw values."""


class DataFile:
    """A data file; raises `Unusable`."""

    def __init__(self, content: object) -> None:
        """Take the content apart."""
        whole_file = mapping(content, "the file")
        version = whole(whole_file.get("version", 1))
        if version is None or version > NEWEST:
            raise Unusable(f"version: found {whole_file.get('version')!r:.40}; allowed: at most {NEWEST}")
        self.version = version
        self.metadata = mapping(whole_file.get("metadata"), "metadata")
        self.series_meta = mapping(self.metadata.get("SERIES_META") or {}, "metadata.SERIES_META")
        self.x_values = [number(x) for x in sequence(whole_file.get("x_values"), "x_values")]
        self.results = mapping(whole_file.get("results"), "results")
        self._raw = mapping(whole_file.get("raw_values") or {}, "raw_values") or self._raw_of_metadata()
        self.names = dict.fromkeys([*self.results, *self._raw])
        """All series, those with results first."""
        if len(self.names) > MOST_SERIES:
            raise Unusable(f"found {len(self.names)} series; allowed: at most {MOST_SERIES}")
        self._sorted: dict[str, Raw] = {}
        self.step_ns = self._step_ns()
        self.t0_ns = self._t0_ns()

    def meta(self, name: str) -> Mapping[str, object]:
        """What the metadata has of a series."""
        found = self.series_meta.get(name)
        return found if isinstance(found, dict) else {}

    def series(self, name: str) -> Series:
        """What the file says of a series."""
        meta = self.meta(name)
        return Series(
            name,
            text(meta.get("RUNNER")),
            text(meta.get("UNITS")),
            text(meta.get("COMMAND")),
            text(meta.get("CONG_CONTROL")).split(",")[0].strip(),
            "COMPUTED_LATE" in meta,
            frozenset(key for _, each in self.raw_values(name) for key in each),
        )

    def raw_values(self, name: str) -> Raw:
        """The raw values of a series with their times, in order of time."""
        if name not in self._sorted:
            found: Raw = []
            for each in mappings(self._raw.get(name) or [], f"raw_values.{printable(name)[:60]}"):
                t_ns = nanoseconds(each.get("t"))
                if t_ns is not None:
                    found.append((t_ns, each))
            self._sorted[name] = sorted(found, key=lambda pair: pair[0])
        return self._sorted[name]

    def interpolated(self, name: str) -> Iterator[tuple[int, float]]:
        """The values of `results` with their times; what is missing is left out."""
        values = sequence(self.results.get(name) or [], f"results.{printable(name)[:60]}")
        for x, value in zip(self.x_values, values, strict=False):
            t_ns, known = nanoseconds(x), number(value)
            if t_ns is not None and known is not None:
                yield self.t0_ns + t_ns, known

    @property
    def mss_bytes(self) -> int:
        """The payload of a full packet, as netperf wrote it down."""
        known = [whole(self.meta(name).get("TCP_MSS")) for name in self.series_meta]
        return min(next((mss for mss in known if mss), DEFAULT_MSS_BYTES), MOST_MSS_BYTES)

    def _raw_of_metadata(self) -> Mapping[str, object]:
        """Where netperf-wrapper, which wrote version 1, kept raw values."""
        return {name: self.meta(name)["RAW_VALUES"] for name in self.series_meta if "RAW_VALUES" in self.meta(name)}

    def _step_ns(self) -> int:
        given = nanoseconds(self.metadata.get("STEP_SIZE"))
        known = [x for x in self.x_values if x is not None]
        steps = [nanoseconds(later - earlier) for earlier, later in pairwise(known[:2])]
        return given or (steps[0] if steps and steps[0] else 0) or NANOSECONDS // 5

    def _t0_ns(self) -> int:
        """The time of x = 0; that of the test, where an old file lacks it.

        Old files have it in local time, without saying in which zone: then the raw values show it.
        """
        known = [text(self.metadata.get(key)) for key in ("T0", "TIME")]
        found = next(((moment, written) for written in known if (moment := _date_ns(written))), None)
        if found is None:
            return 0
        moment, written = found
        first = min((values[0][0] for name in self._raw if (values := self.raw_values(name))), default=None)
        if written.endswith("Z") or first is None or first > LARGEST * 1000:
            return moment
        return max(0, moment + round((first - moment) / ZONE_NS) * ZONE_NS)


def _date_ns(value: str) -> int | None:
    """A time as Flent writes it, taken to be in UTC; None if it is not a time."""
    try:
        moment = datetime.fromisoformat(value.removesuffix("Z"))
    except ValueError:
        return None
    return nanoseconds(moment.replace(tzinfo=UTC).timestamp())
