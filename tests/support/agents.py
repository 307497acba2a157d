"""An agent's output, for tests that stand in for an agent."""

import struct

from bufferscope import _core


def frame(kind: int, payload: bytes) -> bytes:
    return struct.pack("<IB", len(payload), kind) + payload


HELLO = frame(0, struct.pack("<I", _core.PROTOCOL))
"""The frame that comes first: the version of the protocol."""
