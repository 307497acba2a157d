"""What `iperf3 --json` prints: streams, sampled at each interval (`-i`), over TCP or UDP, also `-R` and `--bidir`.

Which end counted the bytes depends on the direction. The streams of the end that wrote the file count what it sent
(what was acknowledged is not printed) or what it received; only a sender on Linux has a window, a round-trip time and
retransmissions. What the other end counted comes at the end of the test, if it is not interrupted before.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bufferscope.interop.importing import budget
from bufferscope.interop.importing.content import Unusable
from bufferscope.interop.importing.result import Reading, Sample
from bufferscope.interop.importing.values import LARGEST, mapping, mappings, nanoseconds, number, text, whole

MICROSECOND = 1000
EVENTS = ("start", "interval", "end", "error", "server_output_json", "server_output_text")


def recognises(content: Any) -> bool:
    """Whether a JSON value comes from iperf3."""
    return isinstance(content, dict) and isinstance(content.get("start"), dict) and "intervals" in content


def joined(values: Sequence[Any]) -> list[Any]:
    """The values with the events of `--json-stream` put together to one value for each test."""
    found: list[Any] = []
    test: dict[str, Any] | None = None
    for value in values:
        event = value.get("event") if isinstance(value, dict) and "data" in value else None
        if event not in EVENTS:
            found.append(value)
            test = None
            continue
        if event == "start" or test is None:
            test = {"start": {}, "intervals": [], "end": {}}
            found.append(test)
        if event == "interval":
            test["intervals"].append(value["data"])
        else:
            test[event] = value["data"]
    return found


def read(content: Any) -> Reading:
    """The streams as flows; raises `Unusable`."""
    whole_file = mapping(content, "the file")
    start = mapping(whole_file.get("start"), "start")
    intervals = list(mappings(whole_file.get("intervals"), "intervals"))
    error = text(whole_file.get("error"))
    if not intervals and error:
        raise Unusable(f"iperf3 failed: {error:.200}")
    end = mapping(whole_file.get("end", {}), "end")
    test = mapping(start.get("test_start", {}), "start.test_start")
    udp = text(test.get("protocol"), "TCP") == "UDP"
    found = Reading("iperf3", text(start.get("version")).removeprefix("iperf "))
    found.title = _title(start)
    started_ns = nanoseconds(mapping(start.get("timestamp", {}), "start.timestamp").get("timesecs"))
    found.clock = started_ns is not None
    is_reverse = (whole(test.get("reverse")) or 0) != 0
    omitted_ns = (whole(test.get("omit")) or 0) * 1_000_000_000
    is_server = "accepted_connection" in start
    streams = _Streams((started_ns or 0) + omitted_ns, is_reverse != is_server, udp, is_server=is_server)
    for index, interval in enumerate(intervals):
        streams.add(list(mappings(interval.get("streams", []), f"intervals[{index}].streams")), index)
    streams.enter(found, _settings(test, end, udp))
    found.interval_ns = streams.interval_ns or found.interval_ns
    found.mss_bytes = whole(start.get("tcp_mss")) or whole(start.get("tcp_mss_default")) or found.mss_bytes
    is_whole = bool(end) and not error
    found.reported.update(_reported(end, streams, is_whole=is_whole))
    _tell(found, udp, streams)
    if not is_whole:
        why = f"ended with an error ({error:.200})" if error else "has no results of its end"
        found.warnings.append(f"iperf3 {why}: what the other end counted is not known")
    return found


def _title(start: Mapping[str, object]) -> str:
    if "accepted_connection" in start:
        host = mapping(start["accepted_connection"], "start.accepted_connection").get("host")
        return f"iperf3, as its server saw {text(host, 'a client')}"
    return f"iperf3 to {text(mapping(start.get('connecting_to', {}), 'start.connecting_to').get('host'), 'a server')}"


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

    def __init__(self, started_ns: int, receives: bool, udp: bool, *, is_server: bool) -> None:
        """`receives` is for old versions, whose streams don't say whether this end sends."""
        self._started_ns, self._receives, self._udp = started_ns, receives, udp
        self.is_server = is_server
        self._samples: dict[tuple[bool, int], list[Sample]] = {}
        """By whether this end sends, and the socket."""
        self.interval_ns: int | None = None

    def add(self, streams: Sequence[Mapping[str, object]], index: int) -> None:
        for number_, stream in enumerate(streams):
            where = f"intervals[{index}].streams[{number_}]"
            socket, counted = whole(stream.get("socket")), whole(stream.get("bytes"))
            begin_ns, end_ns = nanoseconds(stream.get("start")), nanoseconds(stream.get("end"))
            if socket is None or counted is None or begin_ns is None or end_ns is None or end_ns < begin_ns:
                raise Unusable(f"{where}: expected numbers for socket, start, end and bytes")
            if stream.get("omitted") is True:
                continue
            up = bool(stream.get("sender", not self._receives))
            budget.current().records(1)
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
        """Whether this end sends."""
        return any(up for up, _ in self._samples)

    @property
    def receives(self) -> bool:
        """Whether this end receives."""
        return not all(up for up, _ in self._samples)


def _grown(before: int | None, added: object) -> int | None:
    """A counter after an interval; None if it is not counted. Late datagrams are subtracted from the lost ones."""
    found = number(added)
    return before if found is None else max(0, min((before or 0) + int(found), LARGEST))


def _reported(end: Mapping[str, object], streams: _Streams, *, is_whole: bool) -> dict[str, float | str]:
    """iperf3's own results, in the direction of the test, or in both with their names.

    What the other end counted is only known at the end of a test (`is_whole`); until then, iperf3 writes 0. A server is
    never told what its client counted, and writes 0 as well.
    """
    both = streams.sends and streams.receives
    ways = [("up_", True, _sums(end, "")), ("down_", False, _sums(end, "_bidir_reverse"))]
    if streams.is_server and both:
        ways = [("down_", False, _sums(end, "")), ("up_", True, _sums(end, "_bidir_reverse"))]
    if not both:
        ways = [("", streams.sends, _sums(end, ""))]
    found: dict[str, float | None] = {}
    for prefix, up, (sent, received) in ways:
        knows_other = is_whole and not streams.is_server
        if knows_other or not up:
            found[f"{prefix}received_bps"] = number(received.get("bits_per_second"))
            found[f"{prefix}jitter_ms"] = number(received.get("jitter_ms"))
            found[f"{prefix}lost_percent"] = number(received.get("lost_percent"))
        if knows_other or up:
            retransmits = number(sent.get("retransmits"))
            found[f"{prefix}retransmits"] = None if retransmits is None or retransmits < 0 else retransmits
    return {name: value for name, value in found.items() if value is not None}


def _sums(end: Mapping[str, object], way: str) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """What was sent and received in a direction, over all streams."""
    sent, received = end.get(f"sum_sent{way}"), end.get(f"sum_received{way}") or end.get(f"sum{way}")
    return sent if isinstance(sent, dict) else {}, received if isinstance(received, dict) else {}


def _tell(found: Reading, udp: bool, streams: _Streams) -> None:
    if streams.sends:
        what = "datagrams that were sent" if udp else "bytes that were passed to the sockets"
        found.warnings.append(f"goodput of iperf3.up counts the {what}: iperf3 does not sample what has arrived")
    if streams.sends and streams.receives and not udp:
        found.warnings.append("retransmits.total has only those of iperf3.up: an end counts its own")
    if streams.is_server:
        found.warnings.append("written by the server: iperf3.up is what it sent, iperf3.down what it received")
