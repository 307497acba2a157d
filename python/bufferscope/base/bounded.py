"""Types of values with bounds, for documents of unknown origin: `store.schema` checks these types with msgspec."""

from typing import Annotated

from msgspec import Meta

LARGEST = 2**63 - 1
"""The largest integer of the records."""

Whole = Annotated[int, Meta(ge=0, le=LARGEST)]
"""A whole number from 0 on."""
Positive = Annotated[int, Meta(ge=1, le=LARGEST)]
"""A whole number from 1 on."""
Interval = Annotated[list[float | None], Meta(min_length=2, max_length=2)]
"""The two ends of an interval; None for an infinite one."""

NO_NEWLINE = r"(?!\n)"
"""In Python, `$` also matches before a newline at the end of a string; in the patterns of JSON Schema it does not."""


def matching(pattern: str, expected: str) -> Meta:
    """The bounds of a string that the regular expression matches completely; an error says what is `expected`."""
    return Meta(pattern=f"^(?:{pattern})${NO_NEWLINE}", extra={"expected": expected})


Name = Annotated[str, matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", "a name of letters, digits, '.', '_' and '-'")]
"""The name of a node, a link, a traffic entry or a group."""
