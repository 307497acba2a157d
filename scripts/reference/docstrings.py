"""Docstrings with numpydoc's sections, as their parts and as Markdown."""

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from writing import table

SECTIONS = ("Parameters", "Returns", "Yields", "Raises", "Examples")
HEADING = re.compile(rf"^({'|'.join(SECTIONS)})\n-+$", re.MULTILINE)
PROMPT = re.compile(r"^>>> ")


@dataclass(frozen=True)
class Docstring:
    """The parts of a docstring."""

    summary: str
    """Its text before the sections."""
    sections: Mapping[str, str] = field(default_factory=dict)
    """The text of each section."""

    def items(self, section: str) -> dict[str, str]:
        """The entries of a section, in order: an unindented line, and the indented text below it."""
        found: dict[str, list[str]] = {}
        for line in self.sections.get(section, "").splitlines():
            if line and not line.startswith(" "):
                found[line] = []
            elif line.strip():
                list(found.values())[-1].append(line.strip())
        return {name: " ".join(lines) for name, lines in found.items()}


def parsed(thing: object) -> Docstring:
    """The docstring of a function, method, class or module."""
    summary, *rest = HEADING.split(inspect.getdoc(thing) or "")
    return Docstring(summary.strip(), dict(zip(rest[::2], rest[1::2], strict=True)))


def markdown(docstring: Docstring, types: Mapping[str, str], defaults: Mapping[str, str]) -> str:
    """The text and the sections; parameters have the given types and defaults."""
    text = "".join(_prose(docstring.summary))
    if parameters := docstring.items("Parameters"):
        rows = (
            [f"`{name}`", _code(types.get(name.lstrip("*"), "")), _code(defaults.get(name, "")), meaning]
            for name, meaning in parameters.items()
        )
        text += "**Parameters**\n\n" + table(["name", "type", "default", "meaning"], rows)
    for section in ("Returns", "Yields", "Raises"):
        if found := docstring.items(section):
            lines = (f"- `{name}`: {meaning}\n" for name, meaning in found.items())
            text += f"**{section}**\n\n{''.join(lines)}\n"
    if examples := docstring.sections.get("Examples"):
        text += "".join(_prose(examples.strip()))
    return text


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _prose(text: str) -> Iterator[str]:
    """Paragraphs, and examples as blocks of Python."""
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [re.sub(r"\s+# doctest: .*", "", line) for line in paragraph.splitlines()]
        if PROMPT.match(lines[0]):
            yield "```pycon\n" + "\n".join(lines) + "\n```\n\n"
        elif paragraph.strip():
            yield "\n".join(lines) + "\n\n"
