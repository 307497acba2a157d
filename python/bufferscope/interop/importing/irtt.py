"""What `irtt client -o FILE` writes: JSON of format 1 (irtt 0.9), one object for each round trip.

Times are the client's wall clock; one-way delays are differences between the clocks of both ends, so they are only as
good as their synchronisation. A client that is interrupted does not wait for the last answers: probes at the end that
had less time than others needed are not lost, but unknown.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bufferscope.interop.importing.content import Unusable
from bufferscope.interop.importing.result import Probe, Reading
from bufferscope.interop.importing.values import LONGEST_NS, mapping, mappings, text, whole

FORMAT = 1


def recognises(content: Any) -> bool:
    """Whether a JSON value comes from irtt."""
    return isinstance(content, dict) and "round_trips" in content and isinstance(content.get("version"), dict)


def read(content: Any) -> Reading:
    """The round trips as probes; raises `Unusable`."""
    whole_file = mapping(content, "the file")
    version = mapping(whole_file.get("version", {}), "version")
    if version.get("json_format", FORMAT) != FORMAT:
        raise Unusable(f"version.json_format: found {version['json_format']!r:.40}; expected {FORMAT}")
    config = mapping(whole_file.get("config", {}), "config")
    params = mapping(config.get("params", {}), "config.params")
    found = Reading("irtt", text(version.get("irtt")), clock=True)
    found.title = f"irtt to {text(config.get('remote_address'), 'a server')}"
    probes = [_probe(trip, where) for where, trip in enumerate(mappings(whole_file.get("round_trips"), "round_trips"))]
    waited = _waited(probes) if _is_interrupted(params, probes) else probes
    settings: dict[str, object] = {"payload_bytes": whole(params.get("length")) or 0}
    if (interval_ns := whole(params.get("interval"))) and interval_ns <= LONGEST_NS:
        settings["interval_ns"] = interval_ns
    if dscp := whole(params.get("dscp")):
        settings["dscp"] = dscp >> 2
    found.ping("irtt", waited, "irtt", **settings)
    if unknown := len(probes) - len(waited):
        found.warnings.append(
            f"irtt ended before it had waited for the last probes: {unknown} without an answer are left out, not lost"
        )
    if any(probe.owd_up_ns is not None for probe in probes):
        found.warnings.append(
            "one-way delays rely on the clocks of both ends: they are as good as their synchronisation"
        )
    return found


def _is_interrupted(params: Mapping[str, object], probes: Sequence[Probe]) -> bool:
    """Whether the last probe was sent long before the test was to end."""
    duration_ns, interval_ns = whole(params.get("duration")), whole(params.get("interval"))
    if not probes or not duration_ns or not interval_ns:
        return False
    return probes[-1].sent_ns - probes[0].sent_ns + 2 * interval_ns < duration_ns


def _waited(probes: Sequence[Probe]) -> Sequence[Probe]:
    """The probes without the last ones that had less time to be answered than others needed."""
    longest_ns = max((probe.rtt_ns or 0 for probe in probes), default=0)
    ended_ns = max((probe.sent_ns + (probe.rtt_ns or 0) for probe in probes), default=0)
    kept = len(probes)
    while kept and probes[kept - 1].rtt_ns is None and ended_ns - probes[kept - 1].sent_ns < longest_ns:
        kept -= 1
    return probes[:kept]


def _probe(trip: Mapping[str, object], index: int) -> Probe:
    where = f"round_trips[{index}]"
    client = mapping(mapping(trip.get("timestamps"), f"{where}.timestamps").get("client"), f"{where}.timestamps.client")
    sent_ns = mapping(client.get("send"), f"{where}.timestamps.client.send").get("wall")
    if isinstance(sent_ns, bool) or not isinstance(sent_ns, int) or not 0 <= sent_ns < 2**63:
        raise Unusable(f"{where}.timestamps.client.send.wall: found {sent_ns!r:.40}; expected nanoseconds since 1970")
    seq = whole(trip.get("seqno"))
    if seq is None:
        raise Unusable(f"{where}.seqno: found {trip.get('seqno')!r:.40}; expected a whole number")
    delay = mapping(trip.get("delay") or {}, f"{where}.delay")
    if text(trip.get("lost")) != "false" or (rtt_ns := _delay(delay.get("rtt"))) is None:
        return Probe(seq, sent_ns, None)
    return Probe(seq, sent_ns, rtt_ns, _delay(delay.get("send")), _delay(delay.get("receive")))


def _delay(value: object) -> int | None:
    """A delay in nanoseconds; None if it is missing, or negative because clocks disagree."""
    found = whole(value)
    return found if found is not None and found <= LONGEST_NS else None
