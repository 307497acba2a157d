"""A page as HTML: template, style sheet, scripts and the chart library put into one file."""

from collections.abc import Sequence
from functools import cache

from markupsafe import Markup

from bufferscope.figures import style
from bufferscope.report import printing
from bufferscope.report.datasets import once
from bufferscope.report.drawing import script_json
from bufferscope.report.plotting import LANES
from bufferscope.report.templating import PACKAGE, environment
from bufferscope.report.verdicts import GAUGE

STYLES = ("page.css", "contents.css", "story.css", "topology.css", "metrics.css", "paper.css")
"""The style sheets; each comes after those on which it builds."""
SCRIPTS = ("page.js", "pictures.js", "contents.js", "metrics.js")


def render(page: object, template: str, package: str = PACKAGE) -> str:
    """Render a page's content as HTML with a template of `package`, which may use the templates of this package."""
    return (
        environment(package)
        .get_template(template)
        .render(
            page=page,
            style=_joined(STYLES) + _lanes(),
            script=_joined(SCRIPTS),
            charts=printing.chart_library(),
            themes=script_json({"light": _theme(style.LIGHT), "dark": _theme(style.DARK)}),
            gauge_width=GAUGE,
            is_new=once(),
        )
    )


@cache
def _joined(names: Sequence[str]) -> Markup:
    """The content of our own files, which needs no escaping."""
    loader = environment().loader
    assert loader is not None
    return Markup("\n").join(Markup(loader.get_source(environment(), name)[0]) for name in names)


@cache
def _lanes() -> Markup:
    """The colours of traffic in drawings: those of the charts' palettes; on paper, of the light one."""
    light, dark = (
        " ".join(f"--lane-{number}: {colour};" for number, colour in enumerate(theme.palette[:LANES]))
        for theme in (style.LIGHT, style.DARK)
    )
    uses = " ".join(f".lane-{number} {{ color: var(--lane-{number}); }}" for number in range(LANES))
    return Markup(
        f":root {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n{uses}\n"
    )


def _theme(theme: style.Theme) -> dict[str, object]:
    """A theme's chart configuration, with the background of the page."""
    return style.config(theme) | {"background": "transparent"}
