"""How `make docs` builds the site: Markdown in, self-contained HTML out, nothing fetched from anywhere."""

import re
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx  # the tests of these functions have no Sphinx

sys.path.append(str(Path(__file__).parent.parent / "scripts"))
import pictures

_CARGO = tomllib.loads((Path(__file__).parent.parent / "Cargo.toml").read_text())

project = "bufferscope"
author = _CARGO["workspace"]["package"]["authors"][0]
copyright = f"2026, {author}"
release = _CARGO["workspace"]["package"]["version"]

extensions = ["myst_parser"]
myst_enable_extensions = ["attrs_block"]  # `{.cards}` before a list names its style
myst_heading_anchors = 3  # so that [text](page.md#heading) works, as it does on a forge's web page
suppress_warnings = ["misc.highlighting_failure"]  # `toml` blocks that show a part of a file

html_theme = "furo"
html_title = f"bufferscope {release}"
html_show_sphinx = False
html_copy_source = False
html_static_path = ["assets"]
html_css_files = ["cards.css"]


EXPLORER = "explore.html"
"""The explorer's page, which only the site has: `make docs` copies it there."""


def link(picture: str) -> str:
    """The address that opens the experiment of a picture in the explorer; empty if it has none."""
    opened = pictures.opened(picture)
    return f"{EXPLORER}#{opened.fragment()}" if opened else ""


def _opening(picture: re.Match[str]) -> str:
    """A picture, and a link that opens its experiment."""
    address = link(picture["name"])
    if not address:
        return picture[0]
    return f'{picture[0]}\n\n<p><a href="{address}">Open its experiment in the explorer</a></p>'


PICTURE = re.compile(r"^!\[[^]]*\]\(pictures/(?P<name>[\w/-]+\.svg)\)$", re.MULTILINE)


def _linked(_app: "Sphinx", page: str, source: list[str]) -> None:
    """Link to the explorer."""
    if page == "explorer":
        source[0] = source[0].replace("<!-- the explorer -->", f'<p><a href="{EXPLORER}">Open the explorer</a></p>')
    source[0] = PICTURE.sub(_opening, source[0])


def setup(app: "Sphinx") -> None:
    """Called by Sphinx."""
    app.connect("source-read", _linked)
