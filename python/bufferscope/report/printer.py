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


class Order(TypedDict, total=False):
    """What to make: a chart, if it has a specification; a PNG, if it has none; without both, the chart library."""

    spec: dict[str, Any]
    """A Vega-Lite specification with a heading."""
    svg: str
    """The file to write; of a PNG, the text of the SVG that it shows."""
    png: str
    """The file to write."""


CHART_LIBRARY = Order()
PNG_PPI = 144
"""Pixels per inch of a PNG: two for each pixel of the SVG, so that the picture is sharp on high-density screens. The
file says so, and programs show it in the SVG's size."""
CHARTS, PNGS, LIBRARY = "charts", "pngs", "library"
"""The argument of the program: which orders it will get. A process for charts starts its JavaScript engine at once."""


def carry_out(order: Order) -> list[str]:
    """Carry out an order.

    A chart is written as SVG; the answer is the SVG without its heading, and the one that a PNG is made of. A PNG is
    written, without an answer. The answer for the chart library is the library in base64.
    """
    if not order:
        return [b64encode(_chart_library()).decode()]
    import vl_convert  # not for a library that is kept

    if "spec" in order:
        vega = vl_convert.vegalite_to_vega(order["spec"])
        svg = vl_convert.vega_to_svg(vega)
        Path(order["svg"]).write_text(settled(svg), encoding="utf-8")
        without_heading = {key: value for key, value in vega.items() if key != "title"}
        return [settled(vl_convert.vega_to_svg(without_heading)), svg]
    Path(order["png"]).write_bytes(vl_convert.svg_to_png(order["svg"], ppi=PNG_PPI))
    return []


def has_library() -> bool:
    """Whether the chart library is kept from an earlier page."""
    return kept.read(_library_name()) is not None


def _library_name() -> str:
    return f"charts-{version('vl-convert-python')}"


def _chart_library() -> bytes:
    """The script in the zlib format. Bundling it takes longer than drawing all figures of most pages, so it is kept."""
    name = _library_name()
    with suppress(zlib.error):
        if found := kept.read(name):
            zlib.decompress(found)  # checks that it is whole
            return found
    import vl_convert

    made = zlib.compress(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").encode(), 9)
    kept.write(name, made)
    return made


def _serve(orders: str) -> None:
    """Carry out orders until there are no more."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # keeps other output apart from the answers
    if orders == CHARTS:
        import vl_convert

        # Its JavaScript engine starts now, while the first figure is still being made.
        vl_convert.vegalite_to_svg({"mark": "point"})
    for line in sys.stdin:
        print(json.dumps(carry_out(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    _serve(sys.argv[1])
