"""The standard streams as a program can rely on them, however it was started."""

import io
import os
import sys

OUTPUT = "standard output"
"""The file name of errors on it."""


class Output(io.TextIOWrapper):
    """Standard output, whose errors say that they are its own. Characters that its encoding lacks are escaped."""

    def write(self, text: str) -> int:
        """Write; what is lost was asked for, so it is an error."""
        try:
            return super().write(text)
        except OSError as error:
            error.filename = OUTPUT
            raise

    def flush(self) -> None:
        """Write what is buffered."""
        try:
            super().flush()
        except OSError as error:
            error.filename = OUTPUT
            raise


class Unheard(io.TextIOWrapper):
    """Standard error: what nobody can hear (it is full, or its reader has gone) is no reason to stop working."""

    def write(self, text: str) -> int:
        """Write what can be written."""
        try:
            return super().write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        """There is nothing to flush: all is written at once."""


def make_usable() -> None:
    """Let all three streams be there, take any text, and fail only where output is lost that was asked for.

    A stream that was closed gets a descriptor all the same: the next file to be opened would become it.
    """
    # Standard output, too, is opened for reading: writing to one that was closed is an error, as it should be.
    for number, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        if not _is_open(number):
            os.open(os.devnull, flags)
    encodings = [stream.encoding if stream else "utf-8" for stream in (sys.stdin, sys.stdout, sys.stderr)]
    if not sys.stdin:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encodings[0])
    out, err = (io.FileIO(number, "w", closefd=False) for number in (1, 2))
    sys.stdout = Output(io.BufferedWriter(out), encodings[1], "backslashreplace", line_buffering=out.isatty())
    sys.stderr = Unheard(err, encodings[2], "backslashreplace", write_through=True)


def give_up_output() -> None:
    """Let nothing more be written to standard output: the interpreter would try again when it ends."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
