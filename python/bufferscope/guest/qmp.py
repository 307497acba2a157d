"""A client for QMP, QEMU's control protocol: one JSON object a line (qemu, docs/interop/qmp-spec.rst)."""

import json
import socket
import time
from typing import Any

from .errors import GuestError

_READ_BYTES = 65536


class Qmp:
    """Commands go out, replies and events come back, on one connected socket. Every wait has an end."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = b""
        self._events: list[dict[str, Any]] = []

    def negotiate(self, timeout_s: float) -> None:
        """Read the greeting and leave negotiation mode, as QMP demands before the first command."""
        self._message(time.monotonic() + timeout_s)
        self.execute("qmp_capabilities", timeout_s=timeout_s)

    def execute(
        self,
        command: str,
        arguments: dict[str, Any] | None = None,
        *,
        descriptor: int | None = None,
        timeout_s: float = 30,
    ) -> Any:
        """What QEMU returns for `command`, sent with an open file where it takes one. Its error is a `GuestError`."""
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
                raise GuestError(f"QEMU refused {command}: {message['error'].get('desc', message['error'])}")
            else:
                return message.get("return")

    def wait_for(self, event: str, *, timeout_s: float) -> dict[str, Any]:
        """The next event of that name; others before it are dropped."""
        until = time.monotonic() + timeout_s
        while True:
            message = self._events.pop(0) if self._events else self._message(until)
            if message.get("event") == event:
                return message

    def _message(self, until: float) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError("QEMU did not answer in time")
            self._connection.settimeout(left)
            data = self._connection.recv(_READ_BYTES)
            if not data:
                raise ConnectionError("QEMU closed its control connection")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        message = json.loads(line)
        if not isinstance(message, dict):
            raise GuestError(f"QEMU sent {line[:80]!r} where a QMP message was expected")
        return message
