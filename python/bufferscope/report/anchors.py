"""Unique names for a page's sections, for use in links, element ids and the names of the figures' files."""

import re
from collections.abc import Iterable

from bufferscope.figures import NAMES as FIGURES

PAGE_PARTS = frozenset(
    ("charts", "contents", "lead", "meanings", "runs", "statement", "summary", "themes", "verdicts", "why")
)
"""The ids of a page's own elements: these words alone, or followed by `-` and more."""
SECTION_PARTS = (
    *("title", "expectations", "explained", "metrics"),
    *(f"{figure}{part}" for figure in FIGURES for part in ("", "-title")),
)
"""The ends of the ids of a section's elements, after the section's name and `-`."""
_FOREIGN = re.compile(r"[^A-Za-z0-9._-]+")
LONGEST = 80


def safe(words: str) -> str:
    """A string reduced to characters that files, links and ids allow; never empty, and never `.` or `..`."""
    return _FOREIGN.sub("-", words)[:LONGEST].strip("-.") or "experiment"


def anchors(names: Iterable[str]) -> list[str]:
    """A unique anchor for each name, in order: `lab`, and `lab-2` for the second experiment of that name.

    The ids of a section's elements differ from those of all other sections and of the page. No two anchors differ by
    case alone, because the figures may be stored on a file system that ignores case.
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
