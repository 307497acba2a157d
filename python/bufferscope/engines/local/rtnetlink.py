"""Queueing disciplines and classes of an interface as the kernel itself describes them (rtnetlink(7), `tc`).

`tc qdisc show` prints for people, and `tc` does not read what it prints. The kernel, though, takes most disciplines
back in the form in which it reports them, so that they can be restored exactly.
"""

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from bufferscope.base.errors import EngineError

QDISC, CLASS, FILTER = 36, 40, 44
"""RTM_NEWQDISC, RTM_NEWTCLASS and RTM_NEWTFILTER; those that delete and get follow."""
DELETE, GET = 1, 2
ROOT = 0xFFFFFFFF
INGRESS = 0xFFFFFFF1
KIND, OPTIONS = 1, 2
"""TCA_KIND, TCA_OPTIONS"""
_ERROR, _DONE = 2, 3
_REQUEST, _ACK, _EXCLUSIVE, _CREATE, _DUMP = 0x1, 0x4, 0x200, 0x400, 0x300
_HEADER, _TC = struct.Struct("=IHHII"), struct.Struct("=BBHiIII")
_KIND = 0x3FFF
"""The bits of an attribute's kind (NLA_TYPE_MASK)."""
_PIECE = 1 << 16
_MOST = 100_000
"""The most objects that are read."""


@dataclass(frozen=True)
class TcObject:
    """A queueing discipline or a class."""

    handle: int
    parent: int
    kind: str
    options: bytes
    """The content of TCA_OPTIONS."""


def qdiscs(ifindex: int) -> list[TcObject]:
    """The disciplines of an interface. Raises `EngineError`."""
    return list(_dump(QDISC, ifindex))


def classes(ifindex: int) -> list[TcObject]:
    """The classes of its disciplines. Raises `EngineError`."""
    return list(_dump(CLASS, ifindex))


def filters(ifindex: int, parent: int) -> list[TcObject]:
    """The filters at a discipline or a class. Raises `EngineError`."""
    return list(_dump(FILTER, ifindex, parent))


def create_qdisc(ifindex: int, item: TcObject) -> None:
    """Create a discipline. Raises `EngineError`."""
    _ask(QDISC, _REQUEST | _ACK | _CREATE | _EXCLUSIVE, ifindex, item)


def create_class(ifindex: int, item: TcObject) -> None:
    """Create a class. Raises `EngineError`."""
    _ask(CLASS, _REQUEST | _ACK | _CREATE | _EXCLUSIVE, ifindex, item)


def delete_qdisc(ifindex: int, parent: int = ROOT) -> None:
    """Delete the discipline at a parent; the kernel then takes its default. Raises `EngineError`."""
    _ask(QDISC + DELETE, _REQUEST | _ACK, ifindex, TcObject(0, parent, "", b""))


def _ask(kind: int, flags: int, ifindex: int, item: TcObject) -> None:
    attributes = attribute(KIND, item.kind.encode() + b"\0") if item.kind else b""
    if item.kind:
        attributes += attribute(OPTIONS, item.options) if item.options else b""
    with closing(_socket()) as stream:
        _send(stream, kind, flags, _TC.pack(0, 0, 0, ifindex, item.handle, item.parent, 0) + attributes)
        for _ in _answers(stream):
            pass


def _dump(kind: int, ifindex: int, parent: int = 0) -> Iterator[TcObject]:
    with closing(_socket()) as stream:
        _send(stream, kind + GET, _REQUEST | _DUMP, _TC.pack(0, 0, 0, ifindex, 0, parent, 0))
        for count, body in enumerate(_answers(stream)):
            if count >= _MOST:
                raise EngineError(f"the kernel lists more than {_MOST} queueing disciplines")
            _, _, _, index, handle, above, _ = _TC.unpack_from(body)
            if index == ifindex:
                found = {kind & _KIND: content for kind, content in attributes(body[_TC.size :])}
                name = found.get(KIND, b"").rstrip(b"\0").decode(errors="replace")
                yield TcObject(handle, above, name, found.get(OPTIONS, b""))


def _socket() -> socket.socket:
    try:
        return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
    except (OSError, AttributeError) as error:
        raise EngineError(f"the kernel's queueing disciplines cannot be read: {error}") from None


def _send(stream: socket.socket, kind: int, flags: int, body: bytes) -> None:
    stream.settimeout(10)
    stream.send(_HEADER.pack(_HEADER.size + len(body), kind, flags, 1, 0) + body)


def _answers(stream: socket.socket) -> Iterator[bytes]:
    """The bodies of the messages that answer a request, up to its end. Raises `EngineError`."""
    while True:
        try:
            data = stream.recv(_PIECE)
        except OSError as error:
            raise EngineError(f"the kernel does not answer about queueing disciplines: {error}") from None
        while len(data) >= _HEADER.size:
            length, kind, _, _, _ = _HEADER.unpack_from(data)
            if not _HEADER.size <= length <= len(data):
                raise EngineError("the kernel's answer about queueing disciplines is malformed")
            body, data = data[_HEADER.size : length], data[(length + 3) & ~3 :]
            if kind == _DONE:
                return
            if kind == _ERROR:
                (code,) = struct.unpack_from("=i", body)
                if code:
                    raise EngineError(os.strerror(-code))
                return
            yield body


def attribute(kind: int, content: bytes) -> bytes:
    """An attribute, padded to a multiple of four bytes."""
    length = 4 + len(content)
    return struct.pack("=HH", length, kind) + content + bytes(-length % 4)


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The attributes in some bytes; what is malformed ends them."""
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if not 4 <= length <= len(data):
            return
        yield kind, data[4:length]
        data = data[(length + 3) & ~3 :]
