"""The content of a file to import: read completely, decompressed from gzip or bzip2, and bounded."""

import bz2
import codecs
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bufferscope.base import reading
from bufferscope.base.errors import InputError, printable
from bufferscope.interop.importing import budget
from bufferscope.interop.importing.unusable import Unusable

__all__ = ["Unusable", "decompressed", "documents", "lines", "parsed", "read", "text_of"]

MOST_FILE_BYTES = 64 << 20
"""About 40,000 round trips of irtt; what Flent writes of a test is some 1000 times smaller."""
MOST_BYTES = 64 << 20
"""The same, for what a compressed file holds."""
TEXT_FACTOR = 5
"""The memory for each byte of a file: as bytes, as a string of up to 2 bytes per character, and in lines."""
JSON_FACTOR = 25
"""The memory that Python needs for each byte of JSON, at worst: for a list of empty lists."""
CAPTURES = (
    *(magic.to_bytes(4, order) for magic in (0xA1B2C3D4, 0xA1B23C4D, 0xA1B2CD34) for order in ("big", "little")),
    b"\n\r\r\n",
)
"""How pcap and pcapng begin."""
GZIP, BZIP2 = b"\x1f\x8b", b"BZh"
ANY_GZIP = 16 + zlib.MAX_WBITS
FIRST_PIECE, LARGEST_PIECE = 256, 1 << 16
BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
SAMPLE_BYTES = 2000
MOST_OTHERS, MOST_SHOWN = 5, 100
"""Lines that are no JSON, and characters of each, that a message shows."""


def read(path: Path) -> tuple[bytes, str]:
    """A file's bytes, and its text, decompressed. Raises `InputError`."""
    try:
        stored = reading.content(path, MOST_FILE_BYTES)
        content = decompressed(stored)
        if content.startswith(CAPTURES):
            raise Unusable("found a capture of packets, which `bufferscope inspect` reads")
        return stored, text_of(content)
    except (reading.Unreadable, Unusable) as error:
        raise InputError(f"{printable(str(path))}: {error}") from None


def text_of(content: bytes) -> str:
    """A content as text, in the encoding that its byte order mark shows; otherwise UTF-8.

    The shell of Windows writes UTF-16. Bytes that are no UTF-8, as in the code pages of Windows, become U+FFFD: digits,
    signs and the words that the readers look for are ASCII in all of them.
    """
    budget.current().bytes(TEXT_FACTOR * len(content), f"{len(content):,} bytes")
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding, "replace")
    return content.decode(_utf_16(content) or "utf-8", "replace")


def _utf_16(content: bytes) -> str | None:
    """The kind of UTF-16 of a content without a byte order mark, by its line ends or its quotation marks."""
    sample = content[:SAMPLE_BYTES]
    if b"\n\0" in sample or sample.startswith((b"{\0", b'"\0')):
        return "utf-16-le" if sample[1::2].count(0) > sample[0::2].count(0) else None
    return "utf-16-be" if b"\0\n" in sample and sample[0::2].count(0) > sample[1::2].count(0) else None


def decompressed(stored: bytes, most: int = MOST_BYTES) -> bytes:
    """The content, decompressed if it is compressed with gzip or bzip2; raises `Unusable` beyond `most` bytes."""
    magic = next((magic for magic in (GZIP, BZIP2) if stored.startswith(magic)), None)
    if magic is None:
        return stored
    found = bytearray()
    begin = 0
    while stored.startswith(magic, begin):
        begin = _member(stored, begin, found, most, _Gzip() if magic == GZIP else _Bzip2())
    if rest := stored[begin:].strip(b"\0"):
        raise Unusable(f"found {len(rest)} bytes behind the compressed content")
    return bytes(found)


class _Gzip:
    """A member of a file of gzip."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(ANY_GZIP)

    @property
    def eof(self) -> bool:
        """Whether the member's end was reached."""
        return self._member.eof

    def decompress(self, piece: bytes, most: int) -> tuple[bytes, int]:
        """Decompress up to `most` bytes; also returns how many bytes of the piece that took."""
        found = self._member.decompress(piece, most)
        return found, len(piece) - len(self._member.unused_data) - len(self._member.unconsumed_tail)


class _Bzip2:
    """A member of a file of bzip2."""

    def __init__(self) -> None:
        self._member = bz2.BZ2Decompressor()

    @property
    def eof(self) -> bool:
        """Whether the member's end was reached."""
        return self._member.eof

    def decompress(self, piece: bytes, most: int) -> tuple[bytes, int]:
        """Decompress up to `most` bytes; also returns how many bytes of the piece that took."""
        found = self._member.decompress(piece, most)
        while not self._member.eof and not self._member.needs_input and len(found) < most:
            found += self._member.decompress(b"", most - len(found))
        return found, len(piece) - len(self._member.unused_data)


def _member(stored: bytes, begin: int, found: bytearray, most: int, member: _Gzip | _Bzip2) -> int:
    """Decompress the member that begins here; returns where it ends.

    It is read in growing pieces, so that a file of many small members takes time in proportion to its length.
    """
    size = FIRST_PIECE
    while not member.eof:
        piece = stored[begin : begin + size]
        if not piece:
            raise Unusable("cut off: the compressed content has no end")
        budget.current().time()
        try:
            more, used = member.decompress(piece, most + 1 - len(found))
        except (zlib.error, OSError) as error:
            raise Unusable(f"damaged: not to be decompressed ({error})") from None
        found += more
        if len(found) > most:
            raise Unusable(f"found more than {most} bytes when decompressed; allowed: at most that")
        begin += used
        size = min(2 * size, LARGEST_PIECE)
    return begin


def parsed(text: str) -> Any:
    """The value of a JSON text; numbers that are none (NaN) become null. Raises `Unusable`."""
    budget.current().bytes(JSON_FACTOR * len(text), f"{len(text):,} bytes of JSON")
    try:
        return _decoder().decode(text)
    except RecursionError:
        raise Unusable("found JSON that is nested too deeply") from None
    except ValueError as error:
        raise Unusable(f"not JSON, or cut off: {error}") from None


def documents(text: str) -> tuple[list[Any], list[str]]:
    """The JSON objects that follow one another in a file, and the first lines of the text before and after them.

    Programs append to their files, and write messages after their measurements. Text that is cut off in its only value
    is refused. Raises `Unusable`.
    """
    budget.current().bytes(JSON_FACTOR * len(text), f"{len(text):,} bytes of JSON")
    values: list[Any] = []
    others: list[str] = []
    position = 0
    while (position := _next(text, position)) < len(text):
        budget.current().time()
        if text[position] == "{":
            try:
                value, position = _decoder().raw_decode(text, position)
            except RecursionError:
                raise Unusable("found JSON that is nested too deeply") from None
            except ValueError as error:
                if not values:
                    raise Unusable(f"not JSON, or cut off: {error}") from None
                others.append(f"JSON that is cut off or damaged: {error}")
                break
            values.append(value)
        else:
            end = text.find("\n", position)
            end = len(text) if end < 0 else end
            if len(others) < MOST_OTHERS:
                others.append(text[position:end].strip()[:MOST_SHOWN])
            position = end
    return values, others


def _next(text: str, position: int) -> int:
    """Where the next character is that is no white space, comma, byte order mark or record separator (RFC 7464)."""
    while position < len(text) and text[position] in " \t\r\n,\ufeff\x1e":
        position += 1
    return position


def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(parse_constant=lambda _: None)


def lines(text: str) -> Iterator[str]:
    """The lines of a string, one after the other, without a copy of all of them."""
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin)
        end = len(text) if end < 0 else end
        yield text[begin:end].rstrip("\r")
        begin = end + 1
