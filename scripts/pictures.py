"""Draws the pictures of README.md and docs/, from fresh runs, into docs/pictures."""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import altair as alt

import bufferscope as bs
from bufferscope.figures import pictures, style

DIRECTORY = Path(__file__).parents[1] / "docs" / "pictures"
EXAMPLES = DIRECTORY.parent / "examples"
FIGURES: Mapping[str, tuple[str, Callable[[bs.Result], alt.LayerChart | alt.ConcatChart], style.Theme]] = {
    "mitigate-rtt.svg": ("ucas-mitigate", bs.figures.rtt, style.LIGHT),
    "mitigate-rtt-dark.svg": ("ucas-mitigate", bs.figures.rtt, style.DARK),
    "queue-sizes.svg": ("ucas-queue-sizes", bs.figures.queue_length, style.LIGHT),
    "controls-rtt.svg": ("congestion-controls", bs.figures.rtt_matrix, style.LIGHT),
    "controls-share.svg": ("congestion-controls", bs.figures.share_matrix, style.LIGHT),
    "disciplines.svg": ("disciplines", bs.figures.trade_offs, style.LIGHT),
    "disciplines-dark.svg": ("disciplines", bs.figures.trade_offs, style.DARK),
    "throughput-delay.svg": (f"{EXAMPLES}/throughput-and-delay.toml", bs.figures.goodput_delay, style.LIGHT),
}
"""The pictures by name: the experiment, the figure, and its appearance."""
OVERRIDES: Mapping[str, dict[str, int]] = {"queue-sizes.svg": {"tcp.gso_max_segs": 1}}
"""Changes to the experiments: the pages on queue sizes are about packets of one segment."""


def main() -> None:
    """Run the experiments and write the pictures."""
    DIRECTORY.mkdir(exist_ok=True)
    for name, (experiment, figure, theme) in FIGURES.items():
        with tempfile.TemporaryDirectory() as results:
            specification = figure(bs.run(experiment, OVERRIDES.get(name, ()), out=results)).to_dict()
        (DIRECTORY / name).write_text(pictures.svg(specification | {"config": style.config(theme)}))


main()
