"""Labels from values: as short as they can be while everybody still sees what is meant."""

import re
from collections.abc import Collection, Mapping, Sequence

WORD = re.compile(r"[A-Za-z]")
NO_WORDS = ("true", "false", "none", "as in the file")
ALONE = ("engine", "kernel", "experiment")
"""Keys whose values say by themselves what they are."""


def labels(rows: Sequence[Mapping[str, str]], swept: Collection[str]) -> list[str]:
    """A label a row, of the values that differ among these rows.

    A value stands alone where it is swept, a name (`codel`), or the only one that differs; else with its key.

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
    """The keys that tell the rows apart, in their order: each further one parts rows that were alike."""
    used: list[str] = []
    parted = 1
    for key in dict.fromkeys(key for row in rows for key in row):
        parts = len({tuple(row.get(other) for other in (*used, key)) for row in rows})
        if parts > parted:
            used, parted = [*used, key], parts
    return used


def shortest(key: str, keys: Sequence[str]) -> str:
    """As much of the end of a path as no other path ends with: `limit`, `uplink.queue.limit`."""
    parts = key.split(".")
    for count in range(1, len(parts)):
        end = ".".join(parts[-count:])
        if not any(other != key and f".{other}".endswith(f".{end}") for other in keys):
            return end
    return key


def _speaks(key: str, found: Mapping[str, Collection[str]]) -> bool:
    """Whether all values are names, and no other key has one of them too."""
    own = found[key]
    others = {value for other, values in found.items() if other != key for value in values}
    return all(WORD.match(value) and value not in NO_WORDS and value not in others for value in own)
