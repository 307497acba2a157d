"""Make the standard streams reliable, however the program was started."""

import io
import os
import sys

OUTPUT = "standard output"
"""The file name in errors of standard output."""


class Output(io.TextIOWrapper):
    """Standard output; its errors name it. Characters that its encoding lacks are written as escapes."""

    def write(self, text: str) -> int:
        """Write; a failure is an error, because the user asked for this output."""
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


class TolerantStderr(io.TextIOWrapper):
    """Standard error. If it can't be written (it is full, or its reader has exited), the work goes on all the same."""

    def write(self, text: str) -> int:
        """Write what can be written."""
        try:
            return super().write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        """There is nothing to flush: all is written at once."""


def make_usable() -> None:
    """Make all three streams exist and accept any text; only the loss of standard output is an error.

    A closed stream gets a descriptor, too: otherwise the next file to be opened would take its number.
    """
    # If standard output was closed, it is opened for reading, so that writing to it is an error, as it should be.
    for number, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        if not _is_open(number):
            os.open(os.devnull, flags)
    encodings = [stream.encoding if stream else "utf-8" for stream in (sys.stdin, sys.stdout, sys.stderr)]
    if not sys.stdin:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encodings[0])
    out, err = (io.FileIO(number, "w", closefd=False) for number in (1, 2))
    sys.stdout = Output(io.BufferedWriter(out), encodings[1], "backslashreplace", line_buffering=out.isatty())
    sys.stderr = TolerantStderr(err, encodings[2], "backslashreplace", write_through=True)


def give_up_output() -> None:
    """Discard further standard output; otherwise the interpreter would try to write it again when it ends."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
