"""Figures as Altair charts: their JSON has no NaN, and their pictures have a size that fits a page.

`LayerFigure` and `PanelFigure` are Altair's charts in every other way.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import IO, Any

from bufferscope.base.libraries import altair as alt
from bufferscope.figures import legends, zooming

PICTURES = ("svg", "png", "pdf")
"""Formats without interaction."""


class _Figure:
    """What is common to both kinds of chart."""

    def to_dict(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        """The Vega-Lite specification. Numbers that JSON does not have (NaN, infinity) are null."""
        specification: dict[str, Any] = finite(super().to_dict(*arguments, **options))  # type: ignore[misc]
        end_s = specification.get("usermeta", {}).get("end_s")
        if end_s is not None:
            specification["params"] = [*specification.get("params", ()), *zooming.parameters(end_s)]
        else:
            for plot in specification.get("concat", [specification]):
                for layer in plot.get("layer", ()):
                    layer["encoding"] = zooming.whole(layer.get("encoding", {}))
        if "config" in specification:
            specification["config"].setdefault("legend", {}).update(legends.layout(specification))
        return specification

    def save(self, fp: str | Path | IO[Any], format: str | None = None, **options: Any) -> None:
        """Write the chart to a file or a file object, in the format of its name, or `format`.

        `html` and `json` are interactive. `svg`, `png` and `pdf` are drawn like the pictures of a report: a PNG has 144
        pixels per inch, unless `ppi` or `scale_factor` say otherwise. Other options are Altair's.
        """
        from bufferscope.figures import pictures

        kind = format or Path(str(getattr(fp, "name", fp))).suffix[1:].lower()
        if kind not in PICTURES:
            super().save(fp, format, **options)  # type: ignore[misc]
            return
        drawn = pictures.drawn(self.to_dict(), kind, **options)
        if isinstance(fp, (str, Path)):
            Path(fp).write_bytes(drawn)
        else:
            _write(fp, drawn)


class LayerFigure(_Figure, alt.LayerChart):  # type: ignore[misc]
    """A figure of layers."""


class PanelFigure(_Figure, alt.ConcatChart):  # type: ignore[misc]
    """A figure of panels."""


Figure = LayerFigure | PanelFigure
Layer = alt.Chart | alt.LayerChart


def finite(value: Any) -> Any:
    """The same lists and tables, with null instead of NaN and infinity."""
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [finite(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _write(file: IO[Any], drawn: bytes) -> None:
    """Write to a file object, whether it takes bytes or text."""
    try:
        file.write(drawn)
    except TypeError:
        file.write(drawn.decode("utf-8"))
