"""The formats that can be imported, and how each is recognised by its content."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bufferscope.base.errors import InputError, printable
from bufferscope.base.names import closest
from bufferscope.interop.importing import budget, flent, fping, iperf3, irtt, ping, smokeping, table, windows
from bufferscope.interop.importing.content import Unusable, documents
from bufferscope.interop.importing.result import Reading

FIRST_LINES = 4000
RRD = "RRD\0"
"""How the files of RRDtool begin, in which Smokeping keeps its results."""
IPERF_TABLE = "[ ID] Interval"
"""The heads of the columns that iperf and iperf3 print."""


@dataclass(frozen=True)
class Format:
    """A program's format."""

    name: str
    about: str
    recognises: Callable[[Any], bool]
    """Whether a content is of this format: a string, or the value of JSON text."""
    read: Callable[[Any], Reading]
    """Read such a content; raises `Unusable`."""


JSON: Mapping[str, Format] = {
    "flent": Format("flent", "a data file of Flent (.flent.gz)", flent.recognises, flent.read),
    "irtt": Format("irtt", "what `irtt client -o FILE` writes", irtt.recognises, irtt.read),
    "iperf3": Format("iperf3", "what `iperf3 --json` or `--json-stream` prints", iperf3.recognises, iperf3.read),
}
TEXT: Mapping[str, Format] = {
    "fping": Format("fping", "what `fping -C N`, `fping -l` or `fping -D` prints", fping.recognises, fping.read),
    "smokeping": Format(
        "smokeping", "what `rrdtool fetch FILE AVERAGE` prints of Smokeping", smokeping.recognises, smokeping.read
    ),
    "ping": Format("ping", "what `ping` prints, with and without `-D`", ping.recognises, ping.read),
    "windows": Format("windows", "what `ping` of Windows prints, in any language", windows.recognises, windows.read),
    "csv": Format("csv", "columns with names, time and rtt_ms or rtt_s", table.recognises, table.read),
}
FORMATS: Mapping[str, Format] = {**JSON, **TEXT}


def read(text: str, name: str | None = None) -> Reading:
    """What a content with a single test says; `name` is its format, by default the one that the content shows.

    Raises `Unusable` for a damaged content, for several tests, and for one that is no known format, and `InputError`
    for an unknown name.
    """
    found = read_all(text, name)
    if len(found) > 1:
        raise Unusable(f"found {len(found)} tests of {found[0].tool}; expected one")
    return found[0]


def read_all(text: str, name: str | None = None) -> list[Reading]:
    """What each test in a content says, in the order of the content; raises as `read` does."""
    if name is not None and name not in FORMATS:
        raise InputError(f"--as: found {name!r}; allowed: {', '.join(FORMATS)}{closest(name, FORMATS)}")
    if text.startswith(RRD):
        raise Unusable(
            "found a database of RRDtool, as Smokeping has them, which only RRDtool reads; allowed: what "
            "`rrdtool fetch FILE AVERAGE` prints of it"
        )
    with budget.limits():
        if name is not None:
            return _of_json(text, {name: JSON[name]}) if name in JSON else [TEXT[name].read(text)]
        if text.lstrip()[:1] == "{":
            return _of_json(text, JSON)
        if "\n{" in text[:FIRST_LINES] and (found := _behind_text(text)):
            return found
        for known in TEXT.values():
            if known.recognises(text):
                return [known.read(text)]
        if ping.NPING in text[:FIRST_LINES]:
            raise Unusable(
                "found the lines of nping, which have the times of packets, not round trips; allowed: ping or fping"
            )
        if IPERF_TABLE in text[:FIRST_LINES]:
            raise Unusable("found the table that iperf prints, with rounded numbers; allowed: `iperf3 --json`")
        raise Unusable(_unknown("an unknown format"))


def _of_json(text: str, among: Mapping[str, Format]) -> list[Reading]:
    """The readings of the JSON objects in a file; other lines become a warning of the last of them."""
    values, others = documents(text)
    values = iperf3.joined(values)
    if not values:
        raise Unusable("not JSON, or cut off: found no object")
    found: list[Reading] = []
    failed: list[str] = []
    for number, value in enumerate(values, start=1):
        try:
            found.append(_recognised(value, among))
            found[-1].part = number if len(values) > 1 else 0
        except Unusable as error:
            if len(values) == 1:
                raise
            failed.append(f"test {number} is left out: {error}")
    if not found:
        raise Unusable(failed[0].partition(": ")[2])
    if others:
        failed.append(f"the file has lines that are not JSON: {printable('; '.join(others))}")
    found[-1].warnings += failed
    return found


def _recognised(value: Any, among: Mapping[str, Format]) -> Reading:
    if len(among) == 1:
        (known,) = among.values()
        return known.read(value)
    for known in among.values():
        if known.recognises(value):
            return known.read(value)
    raise Unusable(_unknown("JSON, but of no known program"))


def _behind_text(text: str) -> list[Reading] | None:
    """What JSON objects behind lines of text say, as `irtt -o -` prints them; None if they are of no known program."""
    try:
        return _of_json(text, JSON)
    except Unusable:
        return None


def _unknown(found: str) -> str:
    allowed = "; ".join(f"{known.name}: {known.about}" for known in FORMATS.values())
    return f"found {found}; allowed: {allowed}"
