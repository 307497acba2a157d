"""A result's figures for the page: as data for the interactive charts in it, and as stills, if these were asked for."""

import math
import zlib
from base64 import b64encode
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from altair.utils import schemapi
from markupsafe import Markup

from bufferscope import figures
from bufferscope.base import strict_json
from bufferscope.figures import style
from bufferscope.model.figure_names import FigureName
from bufferscope.report import datasets, printing
from bufferscope.report.slimming import slim

if TYPE_CHECKING:
    from bufferscope.results.result import Result

DIRECTORY = "figures"


@dataclass(frozen=True)
class FigureView:
    """One figure of the page."""

    name: str
    title: str
    caption: str
    alt: str
    wide: bool
    """Whether it takes the page's whole width."""
    over_time: bool
    """Whether its x axis is time; such figures of an experiment stand below one another and share the axis."""
    spec: str
    """The chart for vega-embed as `compressed` JSON; the page sets its size and colours."""
    data: Mapping[str, str]
    """The data that `spec` names, as `compressed` JSON (`datasets`)."""
    height: int
    """The least height of the chart in pixels: the page keeps this room until the chart is drawn."""
    drawn: Future[str] | None
    """The chart as an SVG without its heading, available once it is drawn; None if no stills were asked for."""
    svg: str
    """The path of the still, relative to the page; empty without one."""
    png: str

    @property
    def still(self) -> Markup:
        """The chart as a `data:` URL of an SVG, for paper and for browsers without scripts; only if it was drawn.

        It is written for an attribute in double quotes. A picture has thousands of single quotes, which stay as they
        are there; `data_url` leaves none of the double quotes and angle brackets.
        """
        assert self.drawn is not None
        return Markup(data_url(slim(self.drawn.result())).replace("&", "&amp;"))


@dataclass(frozen=True)
class MissingFigure:
    """A figure for which the records hold no data."""

    name: str
    reason: str


def draw(result: "Result", name: FigureName, page: Path, anchor: str) -> FigureView | MissingFigure:
    """Draw a figure of a result, and, if stills were asked for, write its SVG and PNG to `figures/` beside the page.

    The files are named after the `anchor` of the figure's section (`anchors`) and the figure.
    """
    try:
        # Altair would check each part against Vega-Lite's schema, which takes a fifth of a page's time; tests do that.
        with schemapi.debug_mode(False):
            spec = figures.draw(result, name).to_dict(validate=False)
    except figures.NoDataError as error:
        return MissingFigure(name, str(error).removeprefix(f"{name}: "))
    stem = f"{DIRECTORY}/{anchor}-{name}"
    drawn = printing.draw(spec, page.parent / f"{stem}.svg")
    heading = spec.pop("title")
    without_data, data = datasets.divided(_for_the_page(spec))
    return FigureView(
        name=name,
        title=heading["text"],
        caption=" ".join(heading.get("subtitle", [])),
        alt=spec["description"],
        wide=spec.get("usermeta", {}).get("wide", False),
        over_time=spec.get("usermeta", {}).get("over") == "time",
        spec=compressed(strict_json.dumps(without_data)),
        data={name: compressed(text) for name, text in data.items()},
        height=_height(spec),
        drawn=drawn,
        svg=quote(f"{stem}.svg") if drawn else "",
        png=quote(f"{stem}.png") if drawn else "",
    )


def script_json(value: object) -> Markup:
    """JSON that is safe in a script element, whatever text it has: no `<` can end the element or open a comment."""
    return Markup(strict_json.dumps(value).replace("<", "\\u003c"))


def compressed(text: str) -> str:
    """A string in the zlib format (RFC 1950) and base64; browsers call the format `deflate`."""
    return b64encode(zlib.compress(text.encode(), 9)).decode()


def data_url(svg: str) -> str:
    """An SVG as a URL: plain text, which is smaller than base64."""
    return "data:image/svg+xml," + quote(svg, safe=" ~()*!.'/:?@,;=&+$-_|^`{}[]")


def _height(spec: Mapping[str, Any]) -> int:
    """The height of the plots that stand below one another on a wide screen, without their axes."""
    panels = spec.get("concat", [spec])
    rows: int = math.ceil(len(panels) / spec.get("columns", len(panels)))
    highest: int = max(panel.get("height", style.HEIGHT) for panel in panels)
    return rows * highest


def _for_the_page(spec: dict[str, Any]) -> dict[str, Any]:
    """The specification without the colours (light or dark) and the width, which the page sets."""
    kept = {key: value for key, value in spec.items() if key not in ("config", "$schema")}
    if "concat" in kept:  # Vega-Lite fits only single plots to their container; `page.js` sets the width of panels
        return kept
    return kept | {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}
