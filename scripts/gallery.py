"""Draws the pictures of docs/gallery.md from short runs, into docs/pictures/gallery; with names, only these figures."""

import gzip
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import bufferscope as bs
from bufferscope.engines import one_engine
from bufferscope.figures import FigureName, pictures, style
from bufferscope.interop.inspection.inspecting import inspect
from bufferscope.interop.live.measuring import read_events
from bufferscope.model.experiment import load
from bufferscope.report.explorer import Opened
from bufferscope.running.plan import execute, plan

DIRECTORY = Path(__file__).parents[1] / "docs" / "pictures" / "gallery"
EXAMPLES = DIRECTORY.parents[1] / "examples"
EVENTS = ".events.gz"


@dataclass(frozen=True)
class Shown:
    """The runs from which pictures are drawn: short ones of an experiment, at some of its points."""

    experiment: str
    overrides: Mapping[str, object] = field(default_factory=dict)
    points: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The shown values of swept keys; all of the others."""
    repeat: int = 1


SEGMENTS = {"tcp.gso_max_segs": 1}
"""Packets of one segment."""
QUEUES = Shown("ucas-queue-sizes", {"duration": "25s", **SEGMENTS})
DISCIPLINES = Shown(
    "ucas-mitigate",
    {"duration": "25s"},
    {"link.bottleneck.forward.queue": ("taildrop", "red-lab", "codel")},
)
RING = "link.bottleneck.forward.ring.size"
RINGS = Shown(
    "lncc-ring",
    {"duration": "120s"},
    {"link.bottleneck.forward.queue": ("nothing above",), RING: ("80p", "256p", "512p", "1024p")},
    repeat=3,
)
CONTROLS = Shown("congestion-controls", {"duration": "40s"})
HOMES = Shown("dark-netalyzr", points={"link.access.forward.rate": ("as drawn",)}, repeat=120)
FIGURES: Mapping[str, Shown | Path] = {
    "queue_length": QUEUES,
    "rtt": DISCIPLINES,
    "cwnd": QUEUES,
    "goodput": DISCIPLINES,
    "rtt_cdf": QUEUES,
    "rtt_by_point": QUEUES,
    "download_time": Shown("mininet-buffer-size", SEGMENTS),
    "rtt_equation": Shown("mininet-rtt-equation", SEGMENTS),
    "goodput_delay": Shown(f"{EXAMPLES}/throughput-and-delay.toml"),
    "trade_offs": Shown(
        "disciplines", {"duration": "20s"}, {"traffic": ("a flow and a call", "a household")}, repeat=2
    ),
    "buffers": HOMES,
    "rtt_members": HOMES,
    "rtt_by_size": RINGS,
    "drops_by_size": RINGS,
    "retransmits_by_size": RINGS,
    "receive_window": Shown("lncc-window", {"duration": "60s"}, {"tcp": ("offload on",)}),
    "rtt_cdf_panels": Shown(
        "lncc-bql",
        {"duration": "120s"},
        {
            "link.bottleneck.forward": ("904 above 4096", "4920 above 80", "CoDel above 80"),
            "tcp": ("offload on", "offload off"),
        },
    ),
    "throughput_delay": Shown("dark-throughput-delay"),
    "smoke": Shown("dark-smokeping", {"duration": "7200s"}, {"link.cable.forward.queue": ("300 KB",)}),
    "reaction_time": Shown("dark-reaction-time", {"duration": "900s"}, {"tcp.congestion": ("reno",)}),
    "rtt_window": Shown(
        "dark-cubic-trace", {"duration": "40s", **SEGMENTS}, {"link.cable.forward.queue": ("300 KB", "fq_codel")}
    ),
    "round_trips": EXAMPLES / "photos.pcapng.gz",
    "rtt_matrix": CONTROLS,
    "goodput_matrix": CONTROLS,
    "share_matrix": CONTROLS,
    "jain_matrix": CONTROLS,
    "live": EXAMPLES / "upload.events.gz",
}
"""For each figure, its runs, its capture or the events of a live measurement."""


def main(names: Sequence[str]) -> None:
    """Write the pictures of these figures, by default of all."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        results: dict[int, bs.Result] = {}
        for name in names or FIGURES:
            shown = FIGURES[name]
            if id(shown) not in results:
                results[id(shown)] = _result(shown, Path(scratch) / str(len(results)))
            _draw(results[id(shown)], name)


def _draw(result: bs.Result, name: str) -> None:
    specification = bs.figures.draw(result, cast("FigureName", name)).to_dict()
    (DIRECTORY / f"{name}.svg").write_text(pictures.svg(specification | {"config": style.config(style.LIGHT)}))


def opened(name: str) -> Opened | None:
    """The first point of a figure's runs, for the explorer; None if the simulator has not made them."""
    shown = FIGURES[name]
    if isinstance(shown, Path):
        # The experiment from which an example was made has its name.
        made_of = shown.with_name(f"{shown.name.partition('.')[0]}.toml")
        return Opened.of(load(made_of), 0, seed=1) if made_of.exists() else None
    experiment = load(shown.experiment, dict(shown.overrides))
    return Opened.of(experiment, min(experiment.positions(_wanted(shown))), seed=1)


def _result(shown: Shown | Path, out: Path) -> bs.Result:
    """The runs that a picture shows, stored under `out`."""
    if isinstance(shown, Path) and shown.name.endswith(EVENTS):
        return bs.Result([read_events(gzip.decompress(shown.read_bytes()).splitlines(), out)])
    if isinstance(shown, Path):
        out.mkdir()
        return bs.Result([inspect([shown], out).run])
    experiment = load(shown.experiment, dict(shown.overrides))
    tasks = plan(experiment, [one_engine("sim", None)], out, repeat=shown.repeat, wanted=_wanted(shown))
    return bs.Result(execute(tasks, layout="single"))


def _wanted(shown: Shown) -> list[str]:
    return [f"{key}={label}" for key, labels in shown.points.items() for label in labels]


if __name__ == "__main__":
    main(sys.argv[1:])
