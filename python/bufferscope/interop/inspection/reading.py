"""Reads captures with the core."""

import hashlib
import json
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from threading import Event
from typing import Any

from bufferscope import _core
from bufferscope.base.errors import EngineError, InputError, printable
from bufferscope.interop.inspection.beside import together
from bufferscope.store.metadata import SourceFile

STANDARD_INPUT = "-"
HIGHEST_PORT = 65535
PART_BYTES = 1 << 20

Summary = dict[str, Any]
"""What the core says of captures besides the tables: files, vantage points, counts, pings, flows."""


def read(
    files: Sequence[str],
    directory: Path,
    hosts: Sequence[str] = (),
    ports: Sequence[int] = (),
    progress: Callable[[int], bool] | None = None,
) -> tuple[Summary, list[SourceFile]]:
    """Write the tables of captures into a directory; returns a summary and the files with their digests.

    Raises `InputError` for a file that is no capture, and `EngineError` if the tables can't be written.
    """
    addresses, chosen = [_address(host) for host in hosts], [_port(port) for port in ports]
    _check(files)
    stop, summary, sources = Event(), Summary(), list[SourceFile]()

    def step(read_bytes: int) -> bool:
        return not stop.is_set() and (progress is None or progress(read_bytes))

    def captures() -> None:
        summary.update(json.loads(_core.read_captures(list(files), directory, addresses, chosen, step)))

    def digests() -> None:
        sources.extend(_source(file, stop) for file in files if file != STANDARD_INPUT)

    try:
        together([captures, digests], stop)
    except _core.CaptureError as error:
        raise InputError(printable(str(error))) from None
    except _core.TablesError as error:
        raise EngineError(str(error)) from None
    except ValueError as error:
        raise InputError(str(error)) from None
    if STANDARD_INPUT in files:
        # A stream can be read only once: what was found in it stands for it.
        found = json.dumps(summary, sort_keys=True).encode()
        size = summary["counts"]["captured_bytes"]
        sources.append({"file": "standard input", "bytes": size, "sha256": hashlib.sha256(found).hexdigest()})
    return summary, sources


def _check(files: Sequence[str]) -> None:
    for file in files:
        if file != STANDARD_INPUT and not Path(file).exists():
            raise InputError(
                f"{printable(file)}: no such file; allowed: captures (pcap or pcapng), and - for standard input"
            )
        if Path(file).is_dir():
            raise InputError(f"{printable(file)}: found a directory; allowed: captures (pcap or pcapng)")
    if len(set(files)) < len(files):
        twice = next(file for file in files if files.count(file) > 1)
        raise InputError(f"{printable(twice)}: given twice; allowed: each capture once")


def _source(file: str, stop: Event) -> SourceFile:
    path = Path(file)
    # A pipe can be read only once, and not here.
    if not path.is_file():
        return {"file": printable(path.name), "bytes": 0, "sha256": hashlib.sha256(file.encode()).hexdigest()}
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while not stop.is_set() and (part := stream.read(PART_BYTES)):
            digest.update(part)
    return {"file": printable(path.name), "bytes": path.stat().st_size, "sha256": digest.hexdigest()}


def _address(host: str) -> IPv4Address | IPv6Address:
    try:
        # Packets carry no zone: fe80::1%eth0 is fe80::1 on its link.
        return ip_address(host.partition("%")[0])
    except ValueError:
        raise InputError(f"--host: found {host!r:.60}; allowed: an IPv4 or IPv6 address, as 192.0.2.1") from None


def _port(port: int) -> int:
    if not 0 < port <= HIGHEST_PORT:
        raise InputError(f"--transport-port: found {port}; allowed: 1 to {HIGHEST_PORT}")
    return port
