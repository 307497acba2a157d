"""Figures of a result for the page: drawn as pictures beside it, and as data for the interactive charts in it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from altair.utils import schemapi
from markupsafe import Markup

from bufferscope import figures
from bufferscope.figures import pictures
from bufferscope.report import printing

if TYPE_CHECKING:
    from bufferscope.result import Result

DIRECTORY = "figures"


@dataclass(frozen=True)
class FigureView:
    """One figure of the page."""

    name: str
    title: str
    caption: str
    alt: str
    wide: bool
    """It takes the page's whole width."""
    over_time: bool
    """It shares its time axis with the other such figures of the experiment, below one another."""
    spec: Markup
    """The chart for vega-embed as JSON that is safe inside a script element; sized and coloured by the page."""
    still: str
    """The chart as a `data:` URL of an SVG, for paper and for browsers without scripts."""
    svg: str
    """The SVG's place, relative to the page."""
    png: str


@dataclass(frozen=True)
class Missing:
    """A figure that the records hold nothing for."""

    name: str
    reason: str


def draw(result: "Result", name: str, page: Path, anchor: str) -> FigureView | Missing:
    """Draw a figure of a result, and write its SVG and PNG into `figures/` beside the page.

    Their files are called by the `anchor` of the figure's section (`anchors`) and the figure's name.
    """
    try:
        # Altair holds each part against Vega-Lite's schema as it is made, a fifth of a page's time; tests do that.
        with schemapi.debug_mode(False):
            spec = figures.draw(result, name).to_dict(validate=False)
    except figures.NoDataError as error:
        return Missing(name, str(error).removeprefix(f"{name}: "))
    directory = page.parent / DIRECTORY
    directory.mkdir(parents=True, exist_ok=True)
    stem = f"{anchor}-{name}"
    svg = directory / f"{stem}.svg"
    svg.write_text(pictures.svg(spec), encoding="utf-8")
    printing.png(svg, svg.with_suffix(".png"))
    heading = spec.pop("title")
    return FigureView(
        name=name,
        title=heading["text"],
        caption=" ".join(heading.get("subtitle", [])),
        alt=spec["description"],
        wide=spec.get("usermeta", {}).get("wide", False),
        over_time=spec.get("usermeta", {}).get("over") == "time",
        spec=script_json(_for_the_page(spec)),
        still=data_url(pictures.svg(spec)),
        svg=quote(f"{DIRECTORY}/{stem}.svg"),
        png=quote(f"{DIRECTORY}/{stem}.png"),
    )


def script_json(value: Any) -> Markup:
    """JSON that can stand in a script element, whatever text is in it: no `<` can end the element or open a comment."""
    return Markup(json.dumps(value, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c"))


def data_url(svg: str) -> str:
    """An SVG as a URL: readable text, and so smaller than base64."""
    return "data:image/svg+xml," + quote(svg, safe=" ~()*!.'/:?@,;=&+$-_|^`{}[]")


def _for_the_page(spec: dict[str, Any]) -> dict[str, Any]:
    """The specification without what the page decides: colours (light or dark) and width."""
    return {key: value for key, value in spec.items() if key not in ("config", "$schema")} | {
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
    }
