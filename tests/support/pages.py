"""Pages of the documentation whose examples are run, to compare their real output with the output that they show.

`REWRITE_PAGES=1 python -m pytest tests/docs` writes the current output into the pages instead.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    line: int
    """The number of its first line of text, from 1 on."""
    start: int
    end: int
    """Where its text begins and ends in the page."""


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        yield Block(found[1], found[2], text.count("\n", 0, found.start(2)) + 1, found.start(2), found.end(2))


def settled(text: str) -> str:
    """A text without the parts that depend on time, place and build."""
    text = re.sub(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d", "<now>", text.replace("\N{NO-BREAK SPACE}", " "))
    text = re.sub(r"(-s\d+)-[0-9a-f]{8}\b", r"\1-<digest>", text)
    text = re.sub(r"\S+/comparison/", "<here>/comparison/", text)
    return _bare(text)


def hold(page: Path, printed: dict[Block, str]) -> None:
    """Check that each of these blocks shows the real output; with REWRITE_PAGES, change the page so that they do."""
    if os.environ.get("REWRITE_PAGES"):
        text = page.read_text(encoding="utf-8")
        for block, output in sorted(printed.items(), key=lambda item: -item[0].start):
            if settled(output) != settled(block.text):
                fresh = re.sub(r"\S+/comparison/", "/home/you/comparison/", _bare(output))
                text = f"{text[: block.start]}{fresh}\n{text[block.end :]}"
        page.write_text(text, encoding="utf-8")
        return
    for block, output in printed.items():
        where = f"{page.name}:{block.line} shows something else; REWRITE_PAGES=1 writes what is printed now"
        assert settled(output) == settled(block.text), where


def _bare(text: str) -> str:
    """Without the blanks at the end of lines, and the empty lines around it."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
