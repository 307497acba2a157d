"""The values of a series of Flent as probes, or as samples of a flow.

Raw values are taken where there are any: `results` are interpolated at fixed steps. A ping's timestamp is when the
answer arrived. Netperf's values are rates over intervals (`dur`), of what was passed to the socket (upload) or what
arrived (download).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bufferscope.base.errors import printable
from bufferscope.interop.importing import budget
from bufferscope.interop.importing.content import Unusable
from bufferscope.interop.importing.flent.file import DataFile, Raw, Series
from bufferscope.interop.importing.flent.series import counts_transactions, counts_transactions_in_results
from bufferscope.interop.importing.result import Probe, Sample, unwrapped, with_missing
from bufferscope.interop.importing.values import (
    LARGEST,
    LONGEST_NS,
    NANOSECONDS,
    milliseconds,
    nanoseconds,
    number,
    whole,
)

MOST_PACKETS = 1e9
"""No window holds more."""
MBIT_BYTES = 1e6 / 8
STALLED = 10
"""Netperf waits for a lost packet if an interval lasts so many times as long as those beside it."""
READ_STATE = ("tcp_cwnd", "tcp_rtt", "tcp_retransmits")
"""What is read of the state of sockets (Flent's option `--socket-stats`)."""


def probes(file: DataFile, series: Series) -> list[Probe]:
    """A series of round trips; if its values are numbered, what is missing was lost."""
    raw, in_transactions = file.raw_values(series.name), counts_transactions(series, file)
    if not raw:
        raw = [(t_ns, {"val": value}) for t_ns, value in file.interpolated(series.name)]
        in_transactions = counts_transactions_in_results(series, file)
    if in_transactions:
        raw = [(t_ns, _as_milliseconds(each)) for t_ns, each in raw]
    raw = _without_stalls([(t_ns, _within_interval(each)) for t_ns, each in raw], file.step_ns)
    budget.current().records(len(raw))
    numbered = [whole(each.get("seq")) for _, each in raw]
    known = [seq for seq in numbered if seq is not None]
    numbers = unwrapped(known) if len(known) == len(raw) else list(range(len(raw)))
    read = [_probe(seq, t_ns, each) for seq, (t_ns, each) in zip(numbers, raw, strict=True)]
    kept = [probe for probe, (_, each) in zip(read, raw, strict=True) if probe.rtt_ns is not None or each.get("lost")]
    return with_missing(kept)


def _as_milliseconds(each: Mapping[str, object]) -> Mapping[str, object]:
    """Transactions per second, one after the other, as the mean time of one; an interval without any has none."""
    rate = number(each.get("val"))
    if rate is None:
        return {}
    return {**each, "val": 1000 / rate} if rate > 0 else {**each, "lost": True}


def _within_interval(each: Mapping[str, object]) -> Mapping[str, object]:
    """A mean time of transactions, which is no longer than the interval in which they were made.

    Netperf rounds rates to two decimals: one transaction in 42.4 s is 0.02 a second, whose inverse is 50 s.
    """
    mean_ms, dur_ns = number(each.get("val")), nanoseconds(each.get("dur"))
    return {**each, "val": min(mean_ms, dur_ns / 1e6)} if mean_ms is not None and dur_ns else each


def _without_stalls(raw: Raw, step_ns: int) -> Raw:
    """Netperf's values with the intervals in which it waited for one packet, which was lost, as lost probes.

    Netperf's UDP_RR waits for each answer before it sends again. If one is lost, the interval lasts until it gives up,
    maybe until the end of the test, and the mean over it is about as long as the interval: no packet took so long.
    Such an interval is alone among short ones; under load that delays each answer so long, all of them are long.
    """
    lengths = [nanoseconds(each.get("dur")) or 0 for _, each in raw]
    found = []
    for index, (t_ns, each) in enumerate(raw):
        beside = max([step_ns, *lengths[max(0, index - 1) : index], *lengths[index + 1 : index + 2]])
        mean_ns = (number(each.get("val")) or 0) * 1e6
        is_stalled = lengths[index] > STALLED * beside and 2 * mean_ns >= lengths[index]
        has_no_answer = is_stalled or (lengths[index] > 0 and bool(each.get("lost")))
        found.append((max(0, t_ns - lengths[index]), {**each, "lost": True}) if has_no_answer else (t_ns, each))
    return found


def _probe(seq: int, t_ns: int, each: Mapping[str, object]) -> Probe:
    rtt_ns = None if each.get("lost") else milliseconds(each.get("val"))
    if rtt_ns is None:
        return Probe(seq, t_ns, None)
    return Probe(
        seq, max(0, t_ns - rtt_ns), rtt_ns, milliseconds(each.get("owd_up")), milliseconds(each.get("owd_down"))
    )


def has_rates(file: DataFile, series: Series) -> bool:
    """Whether its raw values are rates over known intervals."""
    return any(_rate(each) for _, each in file.raw_values(series.name))


def samples(file: DataFile, series: Series, mss_bytes: int) -> list[Sample]:
    """A series of rates as a growing count of bytes; raises `Unusable` for an impossible one."""
    raw = file.raw_values(series.name) if has_rates(file, series) else _interpolated(file, series)
    budget.current().records(len(raw))
    found: list[Sample] = []
    total, is_begun = 0.0, False
    for t_ns, each in raw:
        known = _rate(each)
        if known is not None:
            rate, dur_ns = known
            if not is_begun:
                is_begun = True
                found.append(Sample(max(0, t_ns - dur_ns), 0))
            total += max(0.0, rate) * MBIT_BYTES * min(dur_ns, LONGEST_NS) / NANOSECONDS
            if total > LARGEST:
                raise Unusable(f"raw_values.{printable(series.name)[:60]}: found {total:.3g} bytes")
        state = _state(each, mss_bytes)
        if known is not None or state:
            found.append(Sample(t_ns, None if known is None else round(total), **state))
    return found


def acknowledged(found: Sequence[Sample], mean_mbit: float | None) -> tuple[Sequence[Sample], int]:
    """Samples of what was passed to a socket as what was acknowledged, and the bytes that were left in the socket.

    Netperf's mean of an upload is over the time until the last byte was acknowledged: what its interim results count
    beyond that mean was still in the send buffer when the load ended. A sender fills its buffer first and keeps it
    full, so at each time that much less had been acknowledged.
    """
    counted = [(sample.t_ns, sample.delivered_bytes) for sample in found if sample.delivered_bytes is not None]
    if mean_mbit is None or mean_mbit <= 0 or not counted:
        return found, 0
    (begin_ns, _), (end_ns, passed) = counted[0], counted[-1]
    left = passed - round(mean_mbit * MBIT_BYTES * (end_ns - begin_ns) / NANOSECONDS)
    if left <= 0:
        return found, 0
    return [
        sample
        if sample.delivered_bytes is None
        else replace(sample, delivered_bytes=max(0, sample.delivered_bytes - left))
        for sample in found
    ], left


def _interpolated(file: DataFile, series: Series) -> Raw:
    step_s = file.step_ns / NANOSECONDS
    return [(t_ns, {"val": rate, "dur": step_s}) for t_ns, rate in file.interpolated(series.name)]


def _rate(each: Mapping[str, object]) -> tuple[float, int] | None:
    """A rate in Mbit/s, and the time over which it was measured."""
    rate, dur_ns = number(each.get("val")), nanoseconds(each.get("dur"))
    return (rate, dur_ns) if rate is not None and dur_ns else None


def _state(each: Mapping[str, object], mss_bytes: int) -> dict[str, int]:
    """What `ss` said of the sender at that time; the window is in packets."""
    window, srtt_ns = number(each.get("tcp_cwnd")), milliseconds(each.get("tcp_rtt"))
    known = {
        "cwnd_bytes": None if window is None or not 0 <= window <= MOST_PACKETS else round(window * mss_bytes),
        "srtt_ns": srtt_ns,
        "retransmits": whole(each.get("tcp_retransmits")),
    }
    return {key: value for key, value in known.items() if value is not None}
