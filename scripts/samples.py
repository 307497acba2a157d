"""Makes the sample capture and the sample Flent file that README.md names, from fresh runs of docs/examples.

A directory as argument takes the place of docs/examples.
"""

import gzip
import sys
import tempfile
from pathlib import Path

import bufferscope as bs
from bufferscope.interop import flent
from bufferscope.interop.packets.exporting import export_packets

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
CAPTURE, FLENT = "photos.pcapng.gz", "evening.flent.gz"
SNAPLEN = 96
"""Bytes of each packet: all headers."""


def main(directory: Path) -> None:
    """Write both files."""
    with tempfile.TemporaryDirectory() as scratch:
        results, exported = Path(scratch) / "results", Path(scratch) / "export"
        photos = bs.run(EXAMPLES / "photos.toml", out=results)
        (capture,) = export_packets(photos.runs, exported, snaplen=SNAPLEN)
        # Without a time and a name in gzip's header, equal packets give equal bytes.
        (directory / CAPTURE).write_bytes(gzip.compress(capture.read_bytes(), mtime=0))
        evening = bs.run(EXAMPLES / "evening.toml", out=results)
        flent.write(evening.runs[0], directory / FLENT)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else EXAMPLES)
