"""Draws a page's pictures: SVGs, PNGs, and the script that draws charts in a browser.

This file is also the program of the process that `printing` starts, so of this package it uses only what needs no
tables. It reads orders from standard input, one per line, and writes one line per answer to standard output.
"""

import json
import os
import sys
import zlib
from base64 import b64encode
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypedDict

from bufferscope.base import kept
from bufferscope.figures.lettering import settled


class Order(TypedDict):
    """A picture to draw; without a specification, it asks for the chart library."""

    spec: dict[str, Any] | None
    """A Vega-Lite specification with a heading."""
    svg: str
    """The SVG file to write."""
    png: str


CHART_LIBRARY = Order(spec=None, svg="", png="")
PNG_PPI = 144
"""Pixels per inch of a PNG: two for each pixel of the SVG, so that the picture is sharp on high-density screens. The
file says so, and programs show it in the SVG's size."""


def carry_out(order: Order) -> str:
    """Write a figure's files, and return its SVG without the heading; or return the chart library in base64."""
    import vl_convert  # not for the process that gives the orders

    if order["spec"] is None:
        return b64encode(_chart_library()).decode()
    vega = vl_convert.vegalite_to_vega(order["spec"])
    svg = vl_convert.vega_to_svg(vega)
    Path(order["svg"]).write_text(settled(svg), encoding="utf-8")
    Path(order["png"]).write_bytes(vl_convert.svg_to_png(svg, ppi=PNG_PPI))
    return settled(vl_convert.vega_to_svg({key: value for key, value in vega.items() if key != "title"}))


def _chart_library() -> bytes:
    """The script in the zlib format. Bundling it takes longer than drawing all figures of most pages, so it is kept."""
    import vl_convert

    name = f"charts-{version('vl-convert-python')}"
    with suppress(zlib.error):
        if found := kept.read(name):
            zlib.decompress(found)  # checks that it is whole
            return found
    made = zlib.compress(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").encode(), 9)
    kept.write(name, made)
    return made


def _serve() -> None:
    """Carry out orders until there are no more."""
    import vl_convert

    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # keeps other output apart from the answers
    # Its JavaScript engine starts now, while the first figure is still being made.
    vl_convert.vegalite_to_svg({"mark": "point"})
    for line in sys.stdin:
        print(json.dumps(carry_out(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    _serve()
