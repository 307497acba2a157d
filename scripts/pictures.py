"""Draws the pictures of README.md and docs/, from fresh runs, into docs/pictures; with names, only these."""

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gallery

import bufferscope as bs
from bufferscope.figures import pictures, style
from bufferscope.figures.chart import Figure as Chart
from bufferscope.metrics.records import RunRecords
from bufferscope.model.experiment import load
from bufferscope.report.explorer import Opened

DIRECTORY = Path(__file__).parents[1] / "docs" / "pictures"
EXAMPLES = DIRECTORY.parent / "examples"
CAPTIONED = ("taildrop", "red-lab", "codel")
"""The queues that the caption of the first picture names."""


@dataclass(frozen=True)
class Some:
    """Some of a result's runs."""

    runs: Sequence[RunRecords]


def rtt_of_captioned(result: bs.Result) -> Chart:
    """The round-trip times with the queues that the caption names."""
    return bs.figures.rtt(Some([run for run in result.runs if set(run.point.values()) & set(CAPTIONED)]))


Figure = Callable[[bs.Result], Any]
FIGURES: Mapping[str, tuple[str, Figure, style.Theme]] = {
    "mitigate-rtt.svg": ("ucas-mitigate", rtt_of_captioned, style.LIGHT),
    "mitigate-rtt-dark.svg": ("ucas-mitigate", rtt_of_captioned, style.DARK),
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
FLENT = {"flent-ping-cdf.svg": "battling-rrul"}
"""Pictures that Flent has drawn of an exported run (docs/other-tools.md)."""


def opened(picture: str) -> Opened | None:
    """The first point of the runs in a picture of docs/pictures, for the explorer; None if no simulation made them."""
    directory, _, name = picture.rpartition("/")
    if directory:
        return gallery.opened(name.removesuffix(".svg"))
    experiment = FLENT[name] if name in FLENT else FIGURES[name][0]
    return Opened.of(load(experiment, dict(OVERRIDES.get(name, {}))), 0, seed=1)


def main(names: Sequence[str]) -> None:
    """Run the experiments and write the pictures."""
    DIRECTORY.mkdir(exist_ok=True)
    chosen = names or list(FIGURES)
    for experiment in dict.fromkeys(FIGURES[name][0] for name in chosen):
        _draw(experiment, [name for name in chosen if FIGURES[name][0] == experiment])


def _draw(experiment: str, names: Sequence[str]) -> None:
    """The pictures of one experiment, which is run once, and whose metrics are computed once."""
    (overrides,) = {tuple(OVERRIDES.get(name, {}).items()) for name in names}
    with tempfile.TemporaryDirectory() as results:
        result = bs.run(experiment, dict(overrides), out=results)
        for name in names:
            _, figure, theme = FIGURES[name]
            specification = figure(result).to_dict() | {"config": style.config(theme)}
            (DIRECTORY / name).write_text(pictures.svg(specification))


if __name__ == "__main__":
    main(sys.argv[1:])
