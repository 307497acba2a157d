"""Small pieces of Markdown."""

import json
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; line breaks and bars in its cells are replaced or escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(_cell(text) for text in line) + " |\n" for line in lines) + "\n"


def heading(level: int, text: str) -> str:
    """A heading with the empty line after it."""
    return f"{'#' * level} {text}\n\n"


def toml(value: object) -> str:
    """A value as it would be written in an experiment file, as code."""
    return f"`{_toml(value)}`"


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_toml(item) for item in value)}]"
    if isinstance(value, dict):
        pairs = (f"{key if key.isidentifier() else json.dumps(key)} = {_toml(item)}" for key, item in value.items())
        return f"{{ {', '.join(pairs)} }}"
    return json.dumps(value)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
