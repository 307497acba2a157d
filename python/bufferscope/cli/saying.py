"""Lines for people, printed without the characters that control terminals. `terminal` does the same for tables."""

import sys

from bufferscope.base.errors import printable, printable_lines


def say(text: object, end: str = "\n") -> None:
    """Print text on standard output, without wrapping it."""
    print(printable_lines(str(text)), end=end)


def note(text: str) -> None:
    """Print one line on standard error."""
    print(printable(text), file=sys.stderr, flush=True)
