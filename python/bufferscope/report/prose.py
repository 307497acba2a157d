"""Text of experiment files as HTML. It comes from anybody's files: nothing in it may act, load or break the page."""

from functools import cache

from markdown_it import MarkdownIt
from markupsafe import Markup

FIRST_HEADING = 4
"""A note's `#` is an h4: it stands inside an experiment's section."""


def markdown(text: str) -> Markup:
    """A text's markdown (CommonMark and tables; no HTML, no images) as HTML that is safe to insert."""
    parser = _parser()
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1:]) + FIRST_HEADING - 1)}"
    return Markup(parser.renderer.render(tokens, parser.options, {}))


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
