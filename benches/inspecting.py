"""Measures how fast captures are read: 1 GB of a few connections, of many, and of packets cut to their headers.

The captures are made in a temporary directory, which needs room for one of them. Each is read once before, so that the
file is in the page cache. Usage: `python benches/inspecting.py [MEGABYTES | --short]`.
"""

import json
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

from bufferscope import _core

MB = 1_000_000
SNAP_BYTES, PAYLOAD_BYTES = 96, 1448
CASES = {
    "whole packets, 10 connections": (1514, 10),
    "96 bytes of each, 10 connections": (SNAP_BYTES, 10),
    "96 bytes of each, 1,000,000 connections": (SNAP_BYTES, 1_000_000),
}
"""Bytes captured of a packet, and connections."""
PIECE = 10_000
"""Packets written at a time."""


def main() -> None:
    """Print a line for each case."""
    if sys.argv[1:2] == ["--read"]:
        print(json.dumps(read(Path(sys.argv[2]))))
        return
    megabytes = 1 if sys.argv[1:] == ["--short"] else int(sys.argv[1]) if sys.argv[1:] else 1000
    for name, (captured, connections) in CASES.items():
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "bench.pcap"
            packets = write(file, megabytes * MB, captured, connections)
            command = [sys.executable, __file__, "--read", str(file)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        # Too short a run, and the kernel has counted no CPU time.
        rate = f"{packets / found['cpu_s'] / 1e6:.2f}" if found["cpu_s"] else "-"
        print(
            f"{name}: {megabytes} MB, {packets:,} packets in {found['seconds']:.2f} s, "
            f"{found['cpu_s']:.2f} s of CPU time ({rate} million packets/s), {found['memory_mb']:.0f} MB of memory",
            flush=True,
        )


def read(file: Path) -> dict[str, float]:
    """Read a capture in this process: the seconds, those of CPU time, and the most memory that it has had."""
    with file.open("rb") as stream:
        while stream.read(16 * MB):
            pass
    with tempfile.TemporaryDirectory() as directory:
        start, started = time.perf_counter(), time.process_time()
        _core.read_captures([str(file)], directory)
        seconds, cpu_s = time.perf_counter() - start, time.process_time() - started
    return {
        "seconds": seconds,
        "cpu_s": cpu_s,
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MB,
    }


def write(file: Path, size: int, captured: int, connections: int) -> int:
    """Write a capture of about this size; returns the number of packets."""
    made = records(captured, connections)
    packets = written = 0
    with file.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, captured, 1))
        while written < size:
            written += out.write(b"".join(islice(made, PIECE)))
            packets += PIECE
    return packets


def records(captured: int, connections: int) -> Iterator[bytes]:
    """Data in turn over all connections; every second packet acknowledges the one before."""
    head = struct.Struct("<IIII")
    ethernet = b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x08\0"
    ip, tcp = struct.Struct(">BBHHHBBHII"), struct.Struct(">HHIIBBHHHBBBBII")
    for number in count():
        turn = number // 2
        flow, segment = turn % connections, turn // connections
        is_ack = number % 2
        seq, port, host = 1 + segment * PAYLOAD_BYTES, 1024 + flow % 60_000, 0x0A000001 + flow // 60_000
        stamp = number // 1000
        size = 52 if is_ack else 52 + PAYLOAD_BYTES
        ends = (0xC0000201, host) if is_ack else (host, 0xC0000201)
        ports = (443, port) if is_ack else (port, 443)
        numbers = (1, seq + PAYLOAD_BYTES) if is_ack else (seq, 1)
        data = (
            ethernet
            + ip.pack(0x45, 0, size, number & 0xFFFF, 0x4000, 64, 6, 0, *ends)
            + tcp.pack(*ports, *numbers, 0x80, 0x10, 65535, 0, 0, 1, 1, 8, 10, stamp, stamp)
        )
        kept = min(captured, size + 14)
        time_of = head.pack(number // 100_000, number % 100_000 * 10, kept, size + 14)
        yield time_of + data[:kept].ljust(kept, b"\0")


if __name__ == "__main__":
    main()
