"""What `iperf3 --json` prints: streams, sampled at each interval (`-i`), over TCP or UDP, also `-R` and `--bidir`.

Which end counted the bytes depends on the direction. The client's streams count what it sent (what was acknowledged is
not printed), those of `-R` what it received; only a sender on Linux has a window, a round-trip time and
retransmissions. Of the datagrams of a client that sends, only the end of the test says how many arrived.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bufferscope.importing.content import Unusable
from bufferscope.importing.result import Reading, Sample
from bufferscope.importing.values import LARGEST, mapping, mappings, nanoseconds, number, text, whole

MICROSECOND = 1000


def recognises(content: Any) -> bool:
    """Whether a JSON value comes from iperf3."""
    return isinstance(content, dict) and isinstance(content.get("start"), dict) and "intervals" in content


def read(content: Any) -> Reading:
    """The streams as flows; raises `Unusable`."""
    whole_file = mapping(content, "the file")
    start = mapping(whole_file.get("start"), "start")
    intervals = list(mappings(whole_file.get("intervals"), "intervals"))
    if not intervals and (error := text(whole_file.get("error"))):
        raise Unusable(f"iperf3 failed: {error:.200}")
    end = mapping(whole_file.get("end", {}), "end")
    test = mapping(start.get("test_start", {}), "start.test_start")
    udp = text(test.get("protocol"), "TCP") == "UDP"
    found = Reading("iperf3", text(start.get("version")).removeprefix("iperf "))
    found.title = (
        f"iperf3 to {text(mapping(start.get('connecting_to', {}), 'start.connecting_to').get('host'), 'a server')}"
    )
    started_ns = nanoseconds(mapping(start.get("timestamp", {}), "start.timestamp").get("timesecs"))
    found.clock = started_ns is not None
    streams = _Streams(started_ns or 0, int(number(test.get("reverse")) or 0) != 0, udp)
    for place, interval in enumerate(intervals):
        streams.add(list(mappings(interval.get("streams", []), f"intervals[{place}].streams")), place)
    streams.enter(found, _settings(test, end, udp))
    found.interval_ns = streams.interval_ns or found.interval_ns
    found.mss_bytes = whole(start.get("tcp_mss")) or whole(start.get("tcp_mss_default")) or found.mss_bytes
    found.reported.update(_reported(end))
    _tell(found, udp, streams)
    return found


def _settings(test: Mapping[str, object], end: Mapping[str, object], udp: bool) -> dict[str, object]:
    settings: dict[str, object] = {}
    if udp:
        settings["payload_bytes"] = whole(test.get("blksize")) or 1
        settings["rate_bps"] = whole(test.get("target_bitrate")) or None
    else:
        settings["congestion"] = text(end.get("sender_tcp_congestion")) or None
    if tos := whole(test.get("tos")):
        settings["dscp"] = tos >> 2
    return {key: value for key, value in settings.items() if value is not None}


class _Streams:
    """The samples of the streams so far, with counters that grow from interval to interval."""

    def __init__(self, started_ns: int, reverse: bool, udp: bool) -> None:
        self._started_ns, self._reverse, self._udp = started_ns, reverse, udp
        self._samples: dict[tuple[bool, int], list[Sample]] = {}
        """By whether the client sends, and the socket."""
        self.interval_ns: int | None = None

    def add(self, streams: Sequence[Mapping[str, object]], place: int) -> None:
        for number_, stream in enumerate(streams):
            where = f"intervals[{place}].streams[{number_}]"
            socket, counted = whole(stream.get("socket")), whole(stream.get("bytes"))
            begin_ns, end_ns = nanoseconds(stream.get("start")), nanoseconds(stream.get("end"))
            if socket is None or counted is None or begin_ns is None or end_ns is None or end_ns < begin_ns:
                raise Unusable(f"{where}: expected numbers for socket, start, end and bytes")
            if stream.get("omitted") is True:
                continue
            up = bool(stream.get("sender", not self._reverse))
            samples = self._samples.setdefault((up, socket), [Sample(self._started_ns + begin_ns, 0)])
            samples.append(self._sample(samples, stream, end_ns, counted))
            self.interval_ns = self.interval_ns or end_ns - begin_ns or None

    def _sample(self, before: Sequence[Sample], stream: Mapping[str, object], end_ns: int, counted: int) -> Sample:
        last = before[-1]
        total = (last.delivered_bytes or 0) + counted
        if total > LARGEST:
            raise Unusable(f"found {total} bytes in one stream")
        rtt_us = whole(stream.get("rtt"))
        return Sample(
            t_ns=self._started_ns + end_ns,
            delivered_bytes=total,
            retransmits=_grown(last.retransmits, stream.get("retransmits")),
            lost=_grown(last.lost, stream.get("lost_packets")),
            cwnd_bytes=whole(stream.get("snd_cwnd")) or None,
            srtt_ns=rtt_us * MICROSECOND if rtt_us else None,
        )

    def enter(self, found: Reading, settings: Mapping[str, object]) -> None:
        kind = "udp" if self._udp else "tcp"
        for up, name in ((True, "iperf3.up"), (False, "iperf3.down")):
            flows = [samples for (is_up, _), samples in self._samples.items() if is_up == up]
            if flows:
                found.load(name, kind, flows, up=up, **settings)

    @property
    def sends(self) -> bool:
        """Whether the client sends."""
        return any(up for up, _ in self._samples)

    @property
    def receives(self) -> bool:
        """Whether the client receives."""
        return not all(up for up, _ in self._samples)


def _grown(before: int | None, added: object) -> int | None:
    """A counter after an interval; None if nobody counts."""
    found = whole(added)
    return None if found is None else min((before or 0) + found, LARGEST)


def _reported(end: Mapping[str, object]) -> dict[str, float | str]:
    """iperf3's own results of the end that received, which the intervals don't have."""
    received = end.get("sum_received") or end.get("sum")
    if not isinstance(received, dict):
        return {}
    names = {"bits_per_second": "received_bps", "jitter_ms": "jitter_ms", "lost_percent": "lost_percent"}
    found = {name: number(received.get(key)) for key, name in names.items()}
    return {name: value for name, value in found.items() if value is not None}


def _tell(found: Reading, udp: bool, streams: _Streams) -> None:
    if streams.sends:
        what = "datagrams that were sent" if udp else "bytes that were passed to the sockets"
        found.warnings.append(f"goodput of iperf3.up counts the {what}: iperf3 does not sample what has arrived")
    if streams.sends and streams.receives and not udp:
        found.warnings.append("retransmits.total has only those of iperf3.up: a client counts its own")
