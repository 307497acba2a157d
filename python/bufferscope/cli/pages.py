"""Writing pages for the commands."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bufferscope.base.errors import InputError
from bufferscope.cli.interruption import at_once
from bufferscope.cli.progress import steps
from bufferscope.cli.saying import say

if TYPE_CHECKING:
    from bufferscope.results.result import Result

Step = Callable[[int, int], None]
"""Called with the number of parts of a page done so far, and the total."""


def is_drawable(result: "Result") -> bool:
    """Whether a page can show all points of a result; if not, a message goes to standard error."""
    from bufferscope.figures.source import MOST_POINTS, size

    if (points := size(result)) <= MOST_POINTS:
        return True
    print(f"No page is written: it can show {MOST_POINTS} points, not {points}.", file=sys.stderr, flush=True)
    return False


def page(directory: Path, write: Callable[[Path, Step], Path], *, silent: bool, left: str = "") -> Path:
    """The page that `write` puts into a directory; shows progress unless silent.

    Raises `InputError` if the directory can't be written to, and on Ctrl-C `CutShortError`, which says what is `left`.
    """
    with steps("Making the page", silent=silent, shares=True) as step:
        return at_once("making the page", lambda: _written(directory, lambda: write(directory, step)), left)


def present(
    *,
    json: bool,
    quiet: bool,
    text: Callable[[], object],
    document: Callable[[], dict[str, Any]],
    directory: Path | None,
    write: Callable[[Path, Step], Path],
    left: str = "",
) -> Path | None:
    """Print what a command found, and put its page into a directory, if there is one; returns the page.

    People get the text first, because a page takes longer. The document of `--json` names the page, so it comes last.
    `write` and `left` are as for `page`.
    """
    silent = json or quiet
    if not silent:
        at_once("computing the metrics", text, left)
        sys.stdout.flush()  # before the progress of the page
    drawn = page(directory, write, silent=silent, left=left) if directory else None
    if json:
        from bufferscope.cli.documents import print_document

        found = at_once("computing the metrics", document, left)
        print_document(found | ({"report": str(drawn)} if drawn else {}))
    elif drawn and not quiet:
        say(f"The page: {drawn.resolve()}")
    return drawn


def _written(directory: Path, write: Callable[[], Path]) -> Path:
    try:
        return write()
    except OSError as error:
        raise InputError(f"{error.filename or directory}: cannot write the report here: {error.strerror}") from None
