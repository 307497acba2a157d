"""What a reader of a captured run must know: what the capture lost, cut off, or can't show."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bufferscope.interop.inspection.quic import HIDDEN
from bufferscope.interop.inspection.reading import Summary

MTU_BYTES = 1500
LARGEST_JUMBO_BYTES = 9216
"""The largest packet of an Ethernet with jumbo frames."""
MOST_NAMES = 3
RARE = 0.001
"""Packets of other kinds that are fewer than this share are not worth a warning."""


def warnings(summary: Summary) -> list[str]:
    """One sentence each, most important first."""
    return [
        *_of_files(summary),
        *_of_copies(summary),
        *_of_points(summary),
        *_of_clocks(summary),
        *_of_packets(summary["counts"]),
        *_of_flows(summary),
        *_of_pings(summary),
        *_of_quic(summary),
    ]


def _of_files(summary: Summary) -> Iterator[str]:
    for file in summary["files"]:
        if file["ended"] is not None:
            before = _many(file["packets"], "packet")
            yield f"{file['name']} {_ending(file['ended'])}: only the part before that is used ({before})"
        elif file["packets"] == 0:
            yield f"{file['name']} has no packets"


def _ending(ended: str) -> str:
    return ended if ended.startswith(("ends", "cannot")) else f"is damaged at {ended}"


def _of_copies(summary: Summary) -> Iterator[str]:
    """Warnings about packets that were captured more than once, and about times that are out of order."""
    counts = summary["counts"]
    if counts["copies"]:
        yield (
            f"{counts['copies']:,} of {_many(counts['packets'], 'packet')} were captured more than once at one vantage "
            "point, as on a mirror port, a bridge or a router: each packet is used once"
        )
    if counts["doubtful_copies"]:
        yield (
            f"{_many(counts['doubtful_copies'], 'segment')} repeat an earlier one entirely, in flows where most do. "
            "Without IP identification, TCP timestamps and the handshake, copies that the capture made can't be "
            "distinguished from retransmissions: the retransmissions of these flows can't be trusted"
        )
    if pair := summary["put_together"]:
        names = " and ".join(summary["files"][number]["name"] for number in pair)
        yield (
            f"{names} have one direction each and are joined. That is right for two captures on one machine; if they "
            "were made on two machines, every round-trip time includes the difference of their clocks"
        )
    if counts["before_first"]:
        yield (
            f"{_many(counts['before_first'], 'packet')} with an earlier time than the first packet of the capture: "
            "times and rates are wrong (sort it first: reordercap OLD NEW)"
        )


def _of_points(summary: Summary) -> Iterator[str]:
    points = summary["places"]
    for point in points:
        where = point_name(point)
        if point["lost"]:
            share = point["lost"] / (point["lost"] + point["packets"])
            yield (
                f"{where}: the capture itself lost {_many(point['lost'], 'packet')} ({share:.2%}), by its own "
                "count; in the records, these look like losses in the network"
            )
        if point["link_name"] is None:
            yield f"{where}: link type {point['link_type']} is not known, so none of its packets is used"
        if point["backwards"]:
            yield f"{where}: the clock went back {_many(point['backwards'], 'time')}"
    if all(not flow["other_places"] for flow in summary["flows"]):
        yield "captured at one vantage point: one-way delays are not known"


def _of_clocks(summary: Summary) -> Iterator[str]:
    """Warnings about clock drift, one for each pair of vantage points."""
    told: dict[frozenset[int], float] = {}
    for flow in summary["flows"]:
        if flow["clock_skew"]:
            pair = frozenset((flow["place"], flow["other_places"][0]))
            told[pair] = max(told.get(pair, 0), abs(flow["clock_skew"]))
    for pair, share in told.items():
        names = " and ".join(point_name(summary["places"][point]) for point in sorted(pair))
        yield (
            f"the clocks of {names} drift by {share * 1e6:.3g} parts per million from each other; the one-way delays "
            "are corrected for that"
        )


def _of_packets(counts: Mapping[str, Any]) -> Iterator[str]:
    if counts["beyond_mtu"]:
        largest = counts["largest_ip_bytes"]
        why = "segmentation offload" if largest > LARGEST_JUMBO_BYTES else "segmentation offload or jumbo frames"
        yield (
            f"{_many(counts['beyond_mtu'], 'segment')} of more than {MTU_BYTES} bytes (up to {largest:,}): {why}; on "
            "the wire, such a segment is several packets"
        )
    if counts["without_options"]:
        yield (
            f"{_many(counts['without_options'], 'segment')} cut off within TCP's options: timestamps and selective "
            "acknowledgements are missing (capture at least 128 bytes: tcpdump -s 128)"
        )
    if counts["without_time"]:
        yield f"{_many(counts['without_time'], 'packet')} without a time left out"
    if counts["fragmented_segments"]:
        yield f"{_many(counts['fragmented_segments'], 'segment')} in fragments of IP left out"
    for layer, packets in counts["layers"].items():
        yield f"{_many(packets, 'packet')} in {layer}: the packets inside are used"
    for what, packets in counts["guesses"].items():
        if packets > RARE * counts["packets"] and what != "QUIC":
            yield f"{_many(packets, 'UDP datagram')} seem to be {what}: the packets inside are not used"
    for reason, packets in counts["undecoded"].items():
        if packets > RARE * counts["packets"]:
            yield f"{packets:,} of {_many(counts['packets'], 'packet')} left out: {reason}"


def _of_flows(summary: Summary) -> Iterator[str]:
    flows = summary["flows"]
    if one_way := [flow["name"] for flow in flows if not flow["both_directions"]]:
        yield f"only one direction of {_some(one_way)} was captured: no round-trip times, nothing in flight, no goodput"
    if unseen := [flow for flow in flows if flow["unseen_bytes"]]:
        lost = sum(flow["unseen_bytes"] for flow in unseen)
        yield (
            f"{lost:,} bytes of {_some([flow['name'] for flow in unseen])} were acknowledged and are not in the "
            "capture, which lost them"
        )
    if unscaled := [flow["name"] for flow in flows if flow["both_directions"] and not flow["window_scale_known"]]:
        yield f"the beginning of {_some(unscaled)} was not captured: the receiver's window has an unknown scale"
    if more := summary["flows_recorded"] - len(flows):
        yield f"{_many(more, 'further flow')} in the records, but not in the table of connections"
    if summary["segments_left_out"]:
        yield f"{_many(summary['segments_left_out'], 'segment')} of further connections left out: too many at a time"


def _of_quic(summary: Summary) -> Iterator[str]:
    if summary["quic"]:
        total = sum(sum(each["bytes"]) for each in summary["quic"])
        yield (
            f"{_many(len(summary['quic']), 'connection')} of QUIC ({total / 1e3:,.4g} kB) not in the records: "
            f"{HIDDEN}. The table of `bufferscope inspect` has rates, and round-trip times by the spin bit if it turns"
        )
    if summary["quic_left_out"]:
        yield f"{_many(summary['quic_left_out'], 'datagram')} of further connections of QUIC left out"


def _some(names: Sequence[str]) -> str:
    """A few names, and how many more.

    >>> _some(["tcp/1", "tcp/2", "tcp/3", "tcp/4", "tcp/5"])
    'tcp/1, tcp/2, tcp/3 and 2 more'
    """
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _of_pings(summary: Summary) -> Iterator[str]:
    for ping in summary["pings"]:
        if ping["answered"] == 0:
            yield (
                f"{ping['name']}: no reply to {_many(ping['requests'], 'request')} from {ping['from']} to {ping['to']} "
                "was captured; perhaps one direction only was"
            )
    if summary["pings_left_out"]:
        yield f"{_many(summary['pings_left_out'], 'echo request')} of further pings left out"


def _many(number: int, what: str) -> str:
    """A number of things.

    >>> _many(1, "packet"), _many(2000, "packet")
    ('1 packet', '2,000 packets')
    """
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def point_name(point: Mapping[str, Any]) -> str:
    """The interface and the file of a vantage point."""
    return f"{point['interface']} of {point['file']}" if point["interface"] else str(point["file"])
