"""PNGs of a page's figures, made beside the drawing by a process of its own: the library holds Python's lock."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from bufferscope.figures import pictures

_CONVERT = """
import json, os, sys
from pathlib import Path
import vl_convert
parent = int(sys.argv[2])
for line in sys.stdin:
    if os.getppid() != parent:
        break
    svg, png = json.loads(line)
    Path(png).write_bytes(vl_convert.svg_to_png(Path(svg).read_text(encoding="utf-8"), scale=float(sys.argv[1])))
"""


class _Printer:
    """The process, which starts with the first picture."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._asked: list[tuple[Path, Path]] = []

    def ask(self, svg: Path, png: Path) -> None:
        """Have a PNG made of an SVG's file."""
        if self._process is None:
            command = [sys.executable, "-P", "-c", _CONVERT, str(pictures.PNG_SCALE), str(os.getpid())]
            # Ctrl-C at a terminal is ours to deal with, and so is what goes wrong there.
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, process_group=0
            )
        self._asked.append((svg, png))
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has died; what it left is made in the end
            self._process.stdin.write(json.dumps([str(svg.resolve()), str(png.resolve())]) + "\n")
            self._process.stdin.flush()

    def abandon(self) -> None:
        """End the process where it is."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def finish(self) -> None:
        """Wait for all of them; what the process did not manage is made here."""
        if self._process is None:
            return
        self._process.communicate()
        if self._process.returncode:
            for svg, png in self._asked:
                png.write_bytes(pictures.png(svg.read_text(encoding="utf-8")))


_printer: ContextVar[_Printer | None] = ContextVar("printer", default=None)


@contextmanager
def beside() -> Iterator[None]:
    """PNGs asked for within the block are made beside it, and are there when it ends."""
    printer = _Printer()
    token = _printer.set(printer)
    try:
        yield
    except BaseException:
        printer.abandon()
        raise
    finally:
        _printer.reset(token)
    printer.finish()


def png(svg: Path, target: Path) -> None:
    """Write the PNG of an SVG's file: at once, or within `beside()` until its block ends."""
    printer = _printer.get()
    if printer is None:
        target.write_bytes(pictures.png(svg.read_text(encoding="utf-8")))
    else:
        printer.ask(svg, target)
