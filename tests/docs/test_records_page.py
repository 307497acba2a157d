"""The page `docs/records.md` lists the existing tables and columns, in order."""

import re
from pathlib import Path

import bufferscope as bs

PAGE = Path(__file__).parents[2] / "docs" / "records.md"


def test_the_page_lists_every_column_of_every_table() -> None:
    _, *sections = re.split(r"^## `(\w+)`$", PAGE.read_text(), flags=re.MULTILINE)
    listed = {
        name: re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
        for name, text in zip(sections[::2], sections[1::2], strict=True)
    }
    assert listed == bs.TABLES
