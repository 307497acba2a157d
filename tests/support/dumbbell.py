"""The dumbbell of `scripts/agreement` with other values: h1 - r1 - h2, a TCP flow and a ping beside it."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bufferscope.model.overrides import toml

FILE = Path(__file__).parents[2] / "scripts" / "agreement" / "dumbbell.toml"


def dumbbell(title: str, duration: str, **changes: Any) -> str:
    """The text of the dumbbell with other values, each key on a line of its own.

    `bottleneck={"rate": "2mbit"}` changes keys of the entry of that name, and `warmup="2s"` adds a key of the file.
    `None` removes a key or an entry.
    """
    document = tomllib.loads(FILE.read_text(encoding="utf-8"))
    entries = [(table, entry) for table in ("link", "traffic") for entry in document[table]]
    names = [entry["name"] for _, entry in entries]
    further = {key: value for key, value in changes.items() if key not in names}
    lines = _lines({"title": title, "duration": duration} | further)
    for table, entry in entries:
        changed = changes.get(entry["name"], {})
        if changed is not None:
            lines += ["", f"[[{table}]]", *_lines(entry | changed)]
    return "\n".join(lines) + "\n"


def _lines(keys: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {_written(value)}" for key, value in keys.items() if value is not None]


def _written(value: Any) -> str:
    """A value with spaces inside the braces, as in files that people write."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_written(each)}" for key, each in value.items()) + " }"
    return toml(value)


def pfifo(packets: int) -> dict[str, str]:
    """A tail-drop queue of this many packets."""
    return {"qdisc": "pfifo", "limit": f"{packets}p"}
