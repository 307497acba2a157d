"""The content of a file to import: read completely, decompressed if it is compressed with gzip, and bounded."""

import json
import zlib
from pathlib import Path
from typing import Any

from bufferscope import machine, reading
from bufferscope.errors import InputError, printable

MOST_FILE_BYTES = 64 << 20
"""About 40,000 round trips of irtt; what Flent writes of a test is some 1000 times smaller."""
MOST_BYTES = 64 << 20
"""The same, for what a compressed file holds."""
JSON_FACTOR = 25
"""The memory that Python needs for each byte of JSON, at worst: for a list of empty lists."""
GZIP = b"\x1f\x8b"
ANY_GZIP = 16 + zlib.MAX_WBITS


class Unusable(Exception):
    """A file does not hold what its format demands; the text says what was found, where, and what is allowed."""


def read(path: Path) -> tuple[bytes, str]:
    """A file's bytes, and its text, decompressed. Raises `InputError`."""
    try:
        stored = reading.content(path, MOST_FILE_BYTES)
        return stored, decompressed(stored).decode("utf-8", "replace")
    except reading.Unreadable as error:
        raise InputError(f"{printable(str(path))}: {error}") from None
    except Unusable as error:
        raise InputError(f"{printable(str(path))}: {error}") from None


def decompressed(stored: bytes, most: int = MOST_BYTES) -> bytes:
    """The content, decompressed if it is compressed with gzip; raises `Unusable` beyond `most` bytes."""
    found = bytearray()
    if not stored.startswith(GZIP):
        return stored
    rest = stored
    while rest.startswith(GZIP):
        member = zlib.decompressobj(ANY_GZIP)
        try:
            found += member.decompress(rest, most + 1 - len(found))
        except zlib.error as error:
            raise Unusable(f"damaged: not to be decompressed ({error})") from None
        if len(found) > most:
            raise Unusable(f"found more than {most} bytes when decompressed; allowed: at most that")
        if not member.eof:
            raise Unusable("cut off: the compressed content has no end")
        rest = member.unused_data
    return bytes(found)


def parsed(text: str) -> Any:
    """The value of a JSON text; numbers that are none (NaN) become null. Raises `Unusable`."""
    available = machine.available_bytes()
    if available is not None and JSON_FACTOR * len(text) > available:
        raise Unusable(f"found {len(text)} bytes of JSON, for which this machine has not enough memory left")
    try:
        return json.loads(text, parse_constant=lambda _: None)
    except RecursionError:
        raise Unusable("found JSON that is nested too deeply") from None
    except ValueError as error:
        raise Unusable(f"not JSON, or cut off: {error}") from None
