"""Results as one self-contained page that works offline: verdicts, figures, parameters, metrics, links to the runs.

>>> from bufferscope import report
>>> report.build([result], "report")                                                            # doctest: +SKIP
"""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from bufferscope.base.errors import InputError

if TYPE_CHECKING:
    from bufferscope.analysis.opening import Opening
    from bufferscope.results.result import Result
    from bufferscope.results.verdicts import ExpectationResult

PAGE = "index.html"

__all__ = ["build"]


def build(
    results: Sequence["Result"],
    path: str | PathLike[str],
    step: Callable[[int, int], None] | None = None,
    elsewhere: Mapping[str, Sequence["ExpectationResult"]] | None = None,
    opening: "Opening | None" = None,
    brief: Mapping[str, str] | None = None,
    stills: bool = False,
) -> Path:
    """Write results as one page that works offline.

    The page contains everything it needs, its scripts included. It links to the runs' directories by relative paths, so
    the links keep working if the page and the runs are moved together.

    Parameters
    ----------
    results
        At least one result; each becomes a section.
    path
        The directory for `index.html`, which is made if needed. If the explorer was built, it is put there, too, and
        the page's experiments open in it.
    step
        Called again and again with the work that is done and the total work, in the same unit.
    elsewhere
        Further measurements of the experiments' expectations, by the experiments' names, which are shown beside those
        of the results.
    opening
        An answer with which the page begins.
    brief
        What part of an experiment was run, by the experiments' names, if not all of it was.
    stills
        Draw each chart also as a picture: in the page for paper and for browsers without scripts, and as SVG and PNG in
        `figures/` beside it. This takes longer than all the rest of most pages.

    Returns
    -------
    pathlib.Path
        The page.

    Raises
    ------
    InputError
        A result has more points than a page can show.
    ValueError
        There are no results.
    """
    from bufferscope.figures.source import MOST_POINTS, size
    from bufferscope.report import explorer, printing
    from bufferscope.report.page import page_view
    from bufferscope.report.rendering import render

    if not results:
        raise ValueError("a report needs at least one result")
    if (largest := max(map(size, results))) > MOST_POINTS:
        raise InputError(f"{path}: a page shows at most {MOST_POINTS} points, and these runs are of {largest}")
    page = Path(path) / PAGE
    page.parent.mkdir(parents=True, exist_ok=True)
    with printing.beside(stills=stills):
        view = page_view(results, page, step, elsewhere, opening, brief)
        page.write_text(render(view, "page.html.jinja"), encoding="utf-8")
        if any(each.explorer for each in view.experiments):
            (page.parent / explorer.BESIDE).write_bytes(explorer.page())
    return page
