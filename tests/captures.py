"""Captures made by hand: packets as bytes, and files of them."""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

MS = 1_000_000
EPOCH_NS = 1_700_000_000 * 1_000_000_000

FIN, SYN, PSH, ACK = 0x01, 0x02, 0x08, 0x10


@dataclass(frozen=True)
class Packet:
    """A packet of IP: when it was captured, and its bytes."""

    t_ns: int
    data: bytes

    def later(self, delay_ns: int) -> "Packet":
        """The same packet, captured elsewhere."""
        return Packet(self.t_ns + delay_ns, self.data)


def tcp(
    t_ns: int,
    ends: tuple[str, int, str, int],
    seq: int,
    ack: int,
    flags: int,
    payload_bytes: int = 0,
    options: bytes = b"",
    *,
    ident: int = 0,
    window: int = 65535,
    ecn: int = 0,
) -> Packet:
    """A segment from the first end (`address, port, address, port`) to the second."""
    sender, sport, receiver, dport = ends
    length = 20 + len(options)
    header = struct.pack(">HHIIBBHHH", sport, dport, seq, ack, length // 4 << 4, flags, window, 0, 0) + options
    return ip(t_ns, sender, receiver, 6, header + bytes(payload_bytes), ident=ident, ecn=ecn)


def ip(t_ns: int, sender: str, receiver: str, protocol: int, payload: bytes, *, ident: int = 0, ecn: int = 0) -> Packet:
    """An IPv4 packet."""
    addresses = ip_address(sender).packed + ip_address(receiver).packed
    fields = struct.pack(">BBHHHBBH", 0x45, ecn, 20 + len(payload), ident, 0x4000, 64, protocol, 0)
    return Packet(t_ns, fields + addresses + payload)


def echo(t_ns: int, sender: str, receiver: str, seq: int, *, reply: bool = False) -> Packet:
    """An echo request, or a reply."""
    return ip(t_ns, sender, receiver, 1, struct.pack(">BBHHH", 0 if reply else 8, 0, 0, 77, seq) + bytes(56))


def pings(count: int, interval_ns: int, rtt_ns: int, lost: Iterable[int] = ()) -> list[Packet]:
    """Requests from 192.0.2.1 to 192.0.2.9 and their replies; numbers from 1."""
    packets = []
    for seq in range(1, count + 1):
        sent_ns = (seq - 1) * interval_ns
        packets.append(echo(sent_ns, "192.0.2.1", "192.0.2.9", seq))
        if seq not in lost:
            packets.append(echo(sent_ns + rtt_ns, "192.0.2.9", "192.0.2.1", seq, reply=True))
    return sorted(packets, key=lambda packet: packet.t_ns)


def download(segments: int, *, rate_bps: int, rtt_ns: int, window: int, mss: int = 1460) -> list[Packet]:
    """A server that sends to a client with a fixed window through a bottleneck, as captured at the server.

    The queue before the bottleneck holds what the path does not, so that from the second round trip on the RTT is
    `window * packet / rate`, if that is more than `rtt_ns`.
    """
    down, up = ("203.0.113.5", 443, "192.0.2.1", 50_000), ("192.0.2.1", 50_000, "203.0.113.5", 443)
    mss_option, scale = struct.pack(">BBH", 2, 4, mss), bytes([1, 3, 3, 7])
    packets = [
        tcp(0, up, 99, 0, SYN, options=mss_option + scale),
        tcp(0, down, 999, 100, SYN | ACK, options=mss_option + scale),
        tcp(rtt_ns, up, 100, 1000, ACK),
    ]
    packet_ns = (mss + 40) * 8 * 1_000_000_000 // rate_bps
    acked_ns: list[int] = []
    free_ns = 0
    for number in range(segments):
        sent_ns = rtt_ns if number < window else acked_ns[number - window]
        free_ns = max(free_ns, sent_ns) + packet_ns
        acked_ns.append(free_ns + rtt_ns)
        packets.append(tcp(sent_ns, down, 1000 + number * mss, 100, ACK, mss, ident=number & 0xFFFF))
        packets.append(tcp(acked_ns[-1], up, 100, 1000 + (number + 1) * mss, ACK))
    return sorted(packets, key=lambda packet: packet.t_ns)


def pcap(packets: Sequence[Packet], *, snap_bytes: int = 262_144, link_type: int = 101) -> bytes:
    """A pcap file with nanoseconds, of raw IP packets."""
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, snap_bytes, link_type)]
    for packet in packets:
        seconds, fraction = divmod(EPOCH_NS + packet.t_ns, 1_000_000_000)
        data = packet.data[:snap_bytes]
        parts.append(struct.pack("<IIII", seconds, fraction, len(data), len(packet.data)) + data)
    return b"".join(parts)


def pcapng(packets: Sequence[Packet], *, interface: bytes = b"eth0", lost: int = 0) -> bytes:
    """A pcapng file with nanoseconds, of raw IP packets of one interface, which lost some."""
    parts = [_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    parts.append(_block(1, struct.pack("<HHI", 101, 0, 0) + _option(2, interface) + _option(9, b"\x09")))
    for packet in packets:
        high, low = divmod(EPOCH_NS + packet.t_ns, 1 << 32)
        size = len(packet.data)
        parts.append(_block(6, struct.pack("<IIIII", 0, high, low, size, size) + packet.data))
    parts.append(_block(5, struct.pack("<III", 0, 0, 0) + _option(5, struct.pack("<Q", lost))))
    return b"".join(parts)


def _block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)
