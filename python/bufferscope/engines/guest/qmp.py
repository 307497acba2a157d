"""A client for QMP, QEMU's control protocol: one JSON object per line (qemu, docs/interop/qmp-spec.rst).

QEMU's own package, qemu.qmp, is not suitable: it needs an event loop for the five commands that save a guest's state,
passes an open file through a private attribute of asyncio, and its synchronous interface is under the GPL.
"""

import json
import socket
import time

from bufferscope.engines.guest.errors import GuestError

_READ_BYTES = 65536
_LONGEST_BYTES = 1 << 24
"""Longer data is not a message; the longest expected message has a few thousand bytes."""


class Qmp:
    """Sends commands and receives replies and events on one connected socket. Every wait has a timeout."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = b""
        self._events: list[dict[str, object]] = []

    def negotiate(self, timeout_s: float) -> None:
        """Read the greeting and leave negotiation mode, as QMP requires before the first command."""
        self._message(time.monotonic() + timeout_s)
        self.execute("qmp_capabilities", timeout_s=timeout_s)

    def execute(
        self,
        command: str,
        arguments: dict[str, object] | None = None,
        *,
        descriptor: int | None = None,
        timeout_s: float = 30,
    ) -> dict[str, object]:
        """Send `command`, with an open file if it takes one, and return the reply. QEMU's errors raise `GuestError`."""
        request = {"execute": command, **({"arguments": arguments} if arguments else {})}
        socket.send_fds(
            self._connection, [json.dumps(request).encode() + b"\n"], [] if descriptor is None else [descriptor]
        )
        until = time.monotonic() + timeout_s
        while True:
            message = self._message(until)
            if "event" in message:
                self._events.append(message)
            elif "error" in message:
                error = message["error"]
                raise GuestError(f"QEMU refused {command}: {error.get('desc') if isinstance(error, dict) else error}")
            elif isinstance(returned := message.get("return"), dict):
                return returned
            else:
                raise _unexpected(json.dumps(message).encode(), f"what {command} returns")

    def wait_for(self, event: str, *, timeout_s: float) -> dict[str, object]:
        """The next event of this name; earlier events are dropped."""
        until = time.monotonic() + timeout_s
        while True:
            message = self._events.pop(0) if self._events else self._message(until)
            if message.get("event") == event:
                return message

    def _message(self, until: float) -> dict[str, object]:
        while b"\n" not in self._buffer:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError("QEMU did not answer in time")
            self._connection.settimeout(left)
            data = self._connection.recv(_READ_BYTES)
            if not data:
                raise ConnectionError("QEMU closed its control connection")
            self._buffer += data
            if len(self._buffer) > _LONGEST_BYTES:
                raise _unexpected(self._buffer, "a QMP message")
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            raise _unexpected(line, "a QMP message")
        return message


def _unexpected(sent: bytes, expected: str) -> GuestError:
    return GuestError(f"QEMU sent {sent[:80]!r} where {expected} was expected")
