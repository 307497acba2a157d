"""Draws the pictures of README.md and docs/, from fresh runs, into docs/pictures: light and dark."""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import altair as alt

import bufferscope as bs
from bufferscope.figures import pictures, style

DIRECTORY = Path(__file__).parents[1] / "docs" / "pictures"
FIGURES: Mapping[str, tuple[str, Callable[[bs.Result], alt.LayerChart]]] = {
    "mitigate-rtt": ("ucas-mitigate", bs.figures.rtt),
    "queue-sizes": ("ucas-queue-sizes", bs.figures.queue_length),
}
"""The pictures by name: of which experiment, and which figure."""


def main() -> None:
    """Run the experiments and write the pictures."""
    DIRECTORY.mkdir(exist_ok=True)
    for name, (experiment, figure) in FIGURES.items():
        with tempfile.TemporaryDirectory() as results:
            specification = figure(bs.run(experiment, out=results)).to_dict()
        for theme, suffix in ((style.LIGHT, ""), (style.DARK, "-dark")):
            drawn = pictures.svg(specification | {"config": style.config(theme)})
            (DIRECTORY / f"{name}{suffix}.svg").write_text(drawn)


main()
