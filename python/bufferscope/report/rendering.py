"""A page as HTML: template, style sheet, scripts and the chart library put into one file."""

from functools import cache

import vl_convert
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bufferscope.figures import style
from bufferscope.report.drawing import script_json
from bufferscope.report.verdicts import GAUGE

PACKAGE = "bufferscope.report"


def render(page: object, template: str, package: str = PACKAGE) -> str:
    """The HTML of a page's content by a template of a package; it may build on the templates of this one."""
    return (
        _environment(package)
        .get_template(template)
        .render(
            page=page,
            style=_resource("page.css"),
            script=_resource("page.js"),
            charts=_chart_library(),
            themes=script_json({"light": _theme(style.LIGHT), "dark": _theme(style.DARK)}),
            gauge_width=GAUGE,
        )
    )


@cache
def _environment(package: str = PACKAGE) -> Environment:
    return Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(PACKAGE)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _resource(name: str) -> Markup:
    """One of our own files, inserted as it is."""
    loader = _environment().loader
    assert loader is not None
    return Markup(loader.get_source(_environment(), name)[0])


@cache
def _chart_library() -> Markup:
    """Vega, Vega-Lite and vega-embed in one script; no `</` in it can end the script element."""
    return Markup(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script"))


def _theme(theme: style.Theme) -> dict[str, object]:
    """A chart configuration whose background is the page's."""
    return style.config(theme) | {"background": "transparent"}
