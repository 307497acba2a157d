"""Connections of QUIC: what a capture shows of them, which is no record of a run.

Acknowledgements, windows and losses are encrypted (RFC 9001), so that no round-trip time but that of the spin bit, no
loss and no goodput can be known. Rates are those of the datagrams' payload.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bufferscope.base.errors import InputError
from bufferscope.interop.inspection.reading import Summary

MS, KB, MBIT = 1e6, 1e3, 1e6
MOST_RATES = 20
"""Rates over time that are given for each direction."""
HIDDEN = "acknowledgements, losses and windows of QUIC are encrypted and can't be seen"
WHY_NO_TIMES = {
    "constant": "the spin bit of one end or of both does not turn, as many servers have it",
    "random": "the spin bit turns without order: it is set by chance, or the capture lost packets",
    "few": "the spin bit turned too rarely to judge it",
    "one-way": "the turns of the spin bit can't be checked, because one direction was not captured",
}


class OnlyQuicError(InputError):
    """Captures that show connections of QUIC, and nothing that becomes a run."""

    def __init__(self, message: str, summary: Summary) -> None:
        """The message says what was found; `summary` has all of it."""
        super().__init__(message)
        self.summary = summary


@dataclass(frozen=True)
class QuicConnection:
    """A connection of QUIC, by the addresses and ports of its ends."""

    client: str
    """Address and port of who opened it; without the handshake, of the end that does not have port 443."""
    server: str
    version: str | None
    """None: the handshake was not captured, so that it is QUIC only by its port."""
    ids: Sequence[Sequence[str]]
    """The connection IDs that the client chose in the handshake, and the server, in hexadecimal."""
    duration_s: float
    kb: tuple[float, float]
    """Payload of the datagrams from the client, and from the server; `mbit` likewise."""
    mbit: tuple[float | None, float | None]
    interval_s: float
    rates_mbit: tuple[Sequence[float], Sequence[float]]
    """The rate of each direction in each interval since the first datagram, at most 20."""
    rtt_ms: tuple[float, float, float] | None
    """Least, median and 95th percentile of the round-trip times by the spin bit; None: see `why`."""
    why: str | None
    """Why no round-trip time is known."""


def quic_connections(summary: Summary) -> list[QuicConnection]:
    """The connections of QUIC, those with the most data first."""
    return [_connection(notes) for notes in summary["quic"]]


def sentences(summary: Summary) -> list[str]:
    """What is found of each connection, in one sentence; at most three."""
    return [_sentence(each) for each in quic_connections(summary)[:3]]


def _connection(notes: Mapping[str, Any]) -> QuicConnection:
    lasted_ns = notes["last_ns"] - notes["first_ns"]
    interval_ns, rates = _rates(notes["interval_ns"], notes["bytes_in"])
    spin = notes["spin"]
    times = (spin["min_ns"], spin["median_ns"], spin["p95_ns"])
    up, down = notes["bytes"]
    return QuicConnection(
        client=_end(notes["from"]),
        server=_end(notes["to"]),
        version=None if notes["version"] is None else _version(notes["version"]),
        ids=notes["ids"],
        duration_s=lasted_ns / 1e9,
        kb=(up / KB, down / KB),
        mbit=(_rate(up, lasted_ns), _rate(down, lasted_ns)),
        interval_s=interval_ns / 1e9,
        rates_mbit=rates,
        rtt_ms=None if None in times else (times[0] / MS, times[1] / MS, times[2] / MS),
        why=WHY_NO_TIMES.get(spin["behaviour"]),
    )


def _rate(sent_bytes: int, lasted_ns: int) -> float | None:
    return sent_bytes * 8e9 / lasted_ns / MBIT if lasted_ns > 0 else None


def _rates(interval_ns: int, counts: Sequence[Sequence[int]]) -> tuple[int, tuple[list[float], list[float]]]:
    """The rates in intervals of one length, which is a multiple of the core's."""
    together = max(1, -(-len(counts[0]) // MOST_RATES))
    length_ns = interval_ns * together
    up, down = (
        [sum(each[start : start + together]) * 8e9 / length_ns / MBIT for start in range(0, len(each), together)]
        for each in counts
    )
    return length_ns, (up, down)


def _sentence(each: QuicConnection) -> str:
    known = f"version {each.version}" if each.version else "by its port alone"
    up, down = each.mbit
    rates = "" if up is None or down is None else f" ({up:.3g} and {down:.3g} Mbit/s)"
    times = f"; {each.why}, so no round-trip time is known" if each.why else ""
    if each.rtt_ms:
        least, median, high = each.rtt_ms
        times = f"; round trips by the spin bit: least {least:.3g} ms, median {median:.3g} ms, p95 {high:.3g} ms"
    return (
        f"QUIC ({known}) from {each.client} to {each.server}: {each.kb[0]:,.4g} kB and back {each.kb[1]:,.4g} kB in "
        f"{each.duration_s:.3g} s{rates}{times}"
    )


def _version(number: int) -> str:
    """A version's name.

    >>> _version(1), _version(0x6B3343CF), _version(0xFF00001D), _version(0x51303530)
    ('1', '2', 'draft-29', 'Q050')
    """
    if number == 0x6B3343CF:
        return "2"
    if number >> 8 == 0xFF0000:
        return f"draft-{number & 0xFF}"
    text = number.to_bytes(4)
    return text.decode() if text.isalnum() else f"{number:#x}" if number > 0xFF else str(number)


def _end(end: Mapping[str, Any]) -> str:
    address, port = end["address"], end["port"]
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
