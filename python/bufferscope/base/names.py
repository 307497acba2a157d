"""Suggestions for misspelt names."""

import difflib
from collections.abc import Iterable


def closest(wanted: str, known: Iterable[str], count: int = 3) -> str:
    """`; did you mean A or B?` with the known names that are similar to the wanted one; empty if none is."""
    found = difflib.get_close_matches(wanted, list(known), n=count, cutoff=0.5)
    return f"; did you mean {' or '.join(found)}?" if found else ""
