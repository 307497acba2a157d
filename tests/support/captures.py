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
    """A packet of IPv4 or IPv6, by the addresses."""
    ends = ip_address(sender.partition("%")[0]), ip_address(receiver.partition("%")[0])
    addresses = b"".join(end.packed for end in ends)
    if ends[0].version == 6:
        header = struct.pack(">IHBB", 6 << 28 | ecn << 20, len(payload), protocol, 64)
    else:
        header = struct.pack(">BBHHHBBH", 0x45, ecn, 20 + len(payload), ident, 0x4000, 64, protocol, 0)
    return Packet(t_ns, header + addresses + payload)


def echo(t_ns: int, sender: str, receiver: str, seq: int, *, reply: bool = False) -> Packet:
    """An echo request, or a reply."""
    is_v6 = ":" in sender
    kind = (129 if reply else 128) if is_v6 else (0 if reply else 8)
    return ip(t_ns, sender, receiver, 58 if is_v6 else 1, struct.pack(">BBHHH", kind, 0, 0, 77, seq) + bytes(56))


PINGED = ("192.0.2.1", "192.0.2.9")


def pings(
    count: int, interval_ns: int, rtt_ns: int, lost: Iterable[int] = (), ends: tuple[str, str] = PINGED
) -> list[Packet]:
    """Requests from the first end to the second and their replies; numbers from 1."""
    packets = []
    near, far = ends
    for seq in range(1, count + 1):
        sent_ns = (seq - 1) * interval_ns
        packets.append(echo(sent_ns, near, far, seq))
        if seq not in lost:
            packets.append(echo(sent_ns + rtt_ns, far, near, seq, reply=True))
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


ENDS = ("192.0.2.1", "203.0.113.5")
WIRE_NS = 1_200_000


def growing(
    segments: int,
    *,
    to_sender_ns: int,
    to_receiver_ns: int,
    added_ns: int,
    tick_ns: int = MS,
    ends: tuple[str, str] = ENDS,
    handshake: bool = True,
    close: bool = False,
) -> list[Packet]:
    """A flow with timestamps from the second end to the first, as seen `to_sender_ns` and `to_receiver_ns` from them.

    Both are round trips. A packet passes every 1.2 ms; a queue before the place of capture, in the half to the sender,
    adds up to `added_ns` in the first half of the segments. The receiver answers each segment; every value of its
    clock, which ticks every `tick_ns`, comes back with the data that the answer released.
    """
    client, server = ends
    down, up = (server, 443, client, 50_000), (client, 50_000, server, 443)
    mss = 1448

    def clock(t_ns: int) -> int:
        return 1 + (t_ns + 10_000 * MS) // tick_ns

    def stamped(t_ns: int, echo: int) -> bytes:
        return b"\x01\x01\x08\x0a" + struct.pack(">II", clock(t_ns), echo)

    packets = []
    if handshake:
        packets = [
            tcp(0, up, 99, 0, SYN, options=stamped(0, 0)),
            tcp(to_sender_ns, down, 999, 100, SYN | ACK, options=stamped(to_sender_ns, clock(0))),
            tcp(
                to_sender_ns + to_receiver_ns,
                up,
                100,
                1000,
                ACK,
                options=stamped(to_sender_ns + to_receiver_ns, clock(to_sender_ns)),
            ),
        ]
    start_ns = 2 * (to_sender_ns + to_receiver_ns)
    answers: list[int] = []
    for number in range(segments):
        t_ns = start_ns + number * WIRE_NS
        half_ns = to_sender_ns + min(added_ns, added_ns * 2 * number // segments)
        passed = [answer for answer in answers[-400:] if answer <= t_ns - half_ns]
        echo = clock(passed[-1]) if passed else clock(to_sender_ns + to_receiver_ns)
        answers.append(t_ns + to_receiver_ns)
        packets.append(tcp(t_ns, down, 1000 + number * mss, 100, ACK, mss, stamped(t_ns, echo), ident=1 + number))
        answer = stamped(answers[-1], clock(t_ns))
        packets.append(tcp(answers[-1], up, 100, 1000 + (number + 1) * mss, ACK, options=answer))
    if close:
        end, end_ns = 1000 + segments * mss, answers[-1] + 500 * MS
        packets.append(tcp(end_ns, up, 100, end, FIN | ACK, options=stamped(end_ns, clock(end_ns - MS))))
        later_ns = end_ns + to_sender_ns
        packets.append(tcp(later_ns, down, end, 101, ACK, options=stamped(later_ns, clock(end_ns))))
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
