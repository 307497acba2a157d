"""Names of a page's sections: parts of links, of element ids and of the figures' files, each used once."""

import re
from collections.abc import Iterable

from bufferscope.figures import NAMES as FIGURES

PAGE_PARTS = frozenset(("contents", "lead", "meanings", "runs", "statement", "summary", "themes", "verdicts", "why"))
"""What pages call their own elements, alone or followed by `-` and more."""
SECTION_PARTS = (
    *("title", "expectations", "metrics"),
    *(f"{figure}{part}" for figure in FIGURES for part in ("", "-title")),
)
"""What follows a section's name and `-` in the ids of its elements."""
_FOREIGN = re.compile(r"[^A-Za-z0-9._-]+")
LONGEST = 80


def safe(words: str) -> str:
    """A text in the letters that suit files, links and ids; never empty, and never one that means a directory."""
    return _FOREIGN.sub("-", words)[:LONGEST].strip("-.") or "experiment"


def anchors(names: Iterable[str]) -> list[str]:
    """An own anchor for each name, in their order: `lab`, and `lab-2` for the second experiment of that name.

    No element of one section has an id of another's or of the page's, and no two anchors differ by case alone: their
    figures may lie on a file system that doesn't tell upper from lower case.
    """
    taken: set[str] = set()
    chosen = []
    for name in names:
        anchor = _free(safe(name), taken)
        taken |= _ids(anchor)
        chosen.append(anchor)
    return chosen


def _free(wanted: str, taken: set[str]) -> str:
    if wanted.partition("-")[0].casefold() in PAGE_PARTS:
        wanted = f"experiment-{wanted}"
    anchor, number = wanted, 1
    while _ids(anchor) & taken:
        number += 1
        anchor = f"{wanted}-{number}"
    return anchor


def _ids(anchor: str) -> set[str]:
    return {anchor.casefold(), *(f"{anchor}-{part}".casefold() for part in SECTION_PARTS)}
