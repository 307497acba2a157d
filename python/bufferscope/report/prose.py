"""Text of experiment files as HTML. The files may come from anybody: no text may run, load or break anything."""

from functools import cache

from markdown_it import MarkdownIt
from markupsafe import Markup

FIRST_HEADING = 4
"""A `#` heading in prose becomes an h4, because the prose is inside an experiment's section."""


def markdown(text: str) -> Markup:
    """Convert Markdown (CommonMark and tables; no HTML, no images) to HTML that is safe to insert."""
    parser = _parser()
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1:]) + FIRST_HEADING - 1)}"
    return Markup(parser.renderer.render(tokens, parser.options, {}))


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
