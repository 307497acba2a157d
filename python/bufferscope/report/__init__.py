"""Results as one self-contained page that works offline: verdicts, figures, parameters, metrics, links to the runs.

>>> from bufferscope import report
>>> report.build([result], "report")                                                            # doctest: +SKIP
"""

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bufferscope.result import Result

PAGE = "index.html"

__all__ = ["build"]


def build(
    results: Sequence["Result"], path: str | PathLike[str], step: Callable[[int, int], None] | None = None
) -> Path:
    """Write `index.html` and `figures/` into the directory `path`, made if need be; the place of the page is returned.

    The page holds all it needs, its scripts included. It links to the runs' directories by relative paths, so it keeps
    working where it is moved together with them. `step` is told, before each result, how many are drawn and how many
    there are.
    """
    from bufferscope.report import printing
    from bufferscope.report.page import page_view
    from bufferscope.report.rendering import render

    if not results:
        raise ValueError("a report needs at least one result")
    page = Path(path) / PAGE
    page.parent.mkdir(parents=True, exist_ok=True)
    with printing.beside():
        page.write_text(render(page_view(results, page, step), "page.html.jinja"), encoding="utf-8")
    return page
