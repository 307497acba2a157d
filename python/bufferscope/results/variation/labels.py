"""Make labels from values: as short as possible, but still clear."""

import re
from collections.abc import Collection, Mapping, Sequence

WORD = re.compile(r"[A-Za-z]")
NO_WORDS = ("true", "false", "none", "as in the file")
ALONE = ("engine", "kernel", "experiment")
"""Keys whose values are clear without the key."""


def labels(rows: Sequence[Mapping[str, str]], swept: Collection[str]) -> list[str]:
    """A label for each row, made of the values that differ among these rows.

    A value stands without its key if it is swept, is a name (`codel`), or is the only one that differs.

    >>> labels([{"a.limit": "5p", "b.limit": "9p"}, {"a.limit": "7p", "b.limit": "8p"}], ())
    ['a.limit=5p, b.limit=9p', 'a.limit=7p, b.limit=8p']
    """
    used = enough(rows)
    found = {key: {row[key] for row in rows if key in row} for key in used}
    alone = {key for key in used if len(used) == 1 or key in swept or key in ALONE or _speaks(key, found)}
    names = {key: shortest(key, used) for key in used}
    return [
        ", ".join(row[key] if key in alone else f"{names[key]}={row[key]}" for key in used if key in row)
        for row in rows
    ]


def enough(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """The keys needed to distinguish the rows, in order; keys that distinguish no further rows are left out."""
    used: list[str] = []
    parted = 1
    for key in dict.fromkeys(key for row in rows for key in row):
        parts = len({tuple(row.get(other) for other in (*used, key)) for row in rows})
        if parts > parted:
            used, parted = [*used, key], parts
    return used


def shortest(key: str, keys: Sequence[str]) -> str:
    """The shortest end of a path that no other path ends with: `limit`, `uplink.queue.limit`."""
    parts = key.split(".")
    for count in range(1, len(parts)):
        end = ".".join(parts[-count:])
        if not any(other != key and f".{other}".endswith(f".{end}") for other in keys):
            return end
    return key


def _speaks(key: str, found: Mapping[str, Collection[str]]) -> bool:
    """Whether all values of the key are names, and no other key has the same value."""
    own = found[key]
    others = {value for other, values in found.items() if other != key for value in values}
    return all(WORD.match(value) and value not in NO_WORDS and value not in others for value in own)
