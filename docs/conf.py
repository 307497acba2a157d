"""How `make docs` builds the site: Markdown in, self-contained HTML out, nothing fetched from anywhere."""

import tomllib
from pathlib import Path

from sphinx.application import Sphinx

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


def setup(app: Sphinx) -> None:
    """Link to the explorer's page, which only the site has: `make docs` copies it there."""

    def linked(_app: Sphinx, _name: str, source: list[str]) -> None:
        source[0] = source[0].replace("<!-- the explorer -->", '<p><a href="explore.html">Open the explorer</a></p>')

    app.connect("source-read", linked)
