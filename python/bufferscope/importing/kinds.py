"""The formats that can be imported, and how each is recognised by its content."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bufferscope.errors import InputError
from bufferscope.importing import flent, fping, iperf3, irtt, ping, smokeping, table, windows
from bufferscope.importing.content import Unusable, parsed
from bufferscope.importing.result import Reading
from bufferscope.names import closest

RRD = "RRD\0"
"""How the files of RRDtool begin, in which Smokeping keeps its results."""


@dataclass(frozen=True)
class Format:
    """A program's format."""

    name: str
    about: str
    recognises: Callable[[Any], bool]
    """Whether a content is of this format: a text, or the value of a JSON text."""
    read: Callable[[Any], Reading]
    """Read such a content; raises `Unusable`."""


JSON: Mapping[str, Format] = {
    "flent": Format("flent", "a data file of Flent (.flent.gz)", flent.recognises, flent.read),
    "irtt": Format("irtt", "what `irtt client -o FILE` writes", irtt.recognises, irtt.read),
    "iperf3": Format("iperf3", "what `iperf3 --json` prints", iperf3.recognises, iperf3.read),
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
    """What a content says; `name` is its format, by default the one that the content shows.

    Raises `Unusable` for a damaged content and for one that is no known format, and `InputError` for an unknown name.
    """
    if name is not None and name not in FORMATS:
        raise InputError(f"--as: found {name!r}; allowed: {', '.join(FORMATS)}{closest(name, FORMATS)}")
    if text.startswith(RRD):
        raise Unusable(
            "found a database of RRDtool, as Smokeping has them, which only RRDtool reads; allowed: what "
            "`rrdtool fetch FILE AVERAGE` prints of it"
        )
    if name is not None:
        known = FORMATS[name]
        return known.read(parsed(text) if name in JSON else text)
    if text.lstrip()[:1] == "{":
        return _recognised(parsed(text), JSON, "JSON, but of no known program")
    return _recognised(text, TEXT, "an unknown format")


def _recognised(content: Any, among: Mapping[str, Format], otherwise: str) -> Reading:
    for known in among.values():
        if known.recognises(content):
            return known.read(content)
    allowed = "; ".join(f"{known.name}: {known.about}" for known in FORMATS.values())
    raise Unusable(f"found {otherwise}; allowed: {allowed}")
