"""The catalogue in brief: fewer repetitions, members and points of the experiments that take most of the time.

No statement of a document loses its point. With the numbers below, every statement got the verdict that it gets with
all seeds and points; where a verdict changed with fewer, the experiment is run as its file says.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bufferscope.base.fmt import number
from bufferscope.model.experiment import Experiment

Choice = tuple[str, ...]
"""Points by their swept values (`PATH=LABEL`): those that have one of the given labels of each path."""


@dataclass(frozen=True)
class Part:
    """The part of an experiment that is run."""

    repeat: int | None = None
    """How many repetitions, or members of a population; None for as many as the file says."""
    points: tuple[Choice, ...] = ((),)
    """The points of any of these choices."""

    def positions(self, experiment: Experiment) -> list[int]:
        """The numbers of the points, in the sweep's order."""
        return sorted({position for choice in self.points for position in experiment.positions(choice)})


WHOLE = Part()
_CARDS = ("1p on the card", "80p on the card", "512p on the card", "1000p on the card", "4096p on the card")
_VLANS = ("1p on a VLAN", "80p on a VLAN", "4096p on a VLAN")
BRIEF: Mapping[str, Part] = {
    "ucas-queue-sizes": Part(2),
    "battling-tcp-bidirectional": Part(3),
    "battling-tcp-asymmetric": Part(3),
    "battling-rrul": Part(2),
    "battling-rrul-path": Part(2),
    "battling-udp-flood": Part(2),
    "lncc-ring": Part(
        1, (tuple(f"link.bottleneck.forward.ring.size={size}" for size in ("80p", "512p", "2048p", "4096p")),)
    ),
    "lncc-qdisc": Part(1, (tuple(f"link.bottleneck.forward={name}" for name in (*_CARDS, *_VLANS)),)),
    "lncc-surface": Part(1, (tuple(f"link.bottleneck.forward.ring.size={size}" for size in ("80p", "512p", "4096p")),)),
    "lncc-bql": Part(
        1,
        (
            ("tcp=offload on",),
            ("tcp=two a slot", "link.bottleneck.forward=2952 above 2048"),
            ("tcp=offload off", "link.bottleneck.forward=2952 on a VLAN, 100 Mbit/s"),
        ),
    ),
    "dark-smokeping": Part(
        1,
        (
            (
                "link.ethernet.forward.queue=no shaping",
                "link.cable.forward.queue=300 KB",
                "link.cable.forward.queue=200 packets",
            ),
            ("link.ethernet.forward.queue=shaped", "link.cable.forward.queue=300 KB"),
        ),
    ),
    "dark-reaction-time": Part(
        points=(tuple(f"link.uplink.forward.queue={times}" for times in ("1", "4", "10", "16")),)
    ),
    "dark-web": Part(2),
    "dark-netalyzr": Part(300, (("link.access.forward.rate=as drawn",), ("link.access.queue=tail drop",))),
    "disciplines": Part(1),
    "wifi-anomaly": Part(2),
    "wifi-anomaly-losses": Part(2),
}
"""The experiments that are not run whole, by name."""


def part_of(experiment: Experiment) -> Part:
    """What is run of an experiment in brief: all of one that is not the catalogue's, or that is changed."""
    return WHOLE if experiment.path or experiment.overrides else BRIEF.get(experiment.name, WHOLE)


def left_out(experiment: Experiment, part: Part) -> str:
    """What is run of an experiment of which a part is left out, in words; empty if nothing is left out."""
    positions = part.positions(experiment)
    repeat, whole = part.repeat, experiment.document["repeat"]
    parts = []
    if len(positions) < len(experiment.points):
        parts.append(f"{len(positions)} of its {len(experiment.points)} points")
    if repeat is not None and repeat < whole:
        kind = "members" if experiment.document.get("population") else "repetitions"
        parts.append(f"{repeat} of {number(whole)} {kind}")
    return " and ".join(parts)
