"""Names that somebody may have meant."""

import difflib
from collections.abc import Iterable


def closest(wanted: str, known: Iterable[str], count: int = 3) -> str:
    """`; did you mean A or B?` for the known names that are like the wanted one; empty where none is."""
    found = difflib.get_close_matches(wanted, list(known), n=count, cutoff=0.5)
    return f"; did you mean {' or '.join(found)}?" if found else ""
