"""Plants queues in guests, cures them with the commands that `bufferscope fix` prints, and measures again.

The guest's kernel has cake, and the commands are typed on the router as they are printed. The exit status is 1
if a queue is not found, or not cured: 80 % less delay (p95) or less than 10 ms, and 90 % of the goodput (rounded).
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import bufferscope as bs
from bufferscope.analysis.fixing.improvement import Compared, compared, goodput_bps
from bufferscope.store.run import Run
from predictions import PATH, measure

FLOWS = 4
SHORTER, SHORT_NS, GOODPUT = 0.2, 10e6, 0.9
UP = '{ rate = "8mbit", queue = { qdisc = "bfifo", limit = "300000b" } }'
DOWN = '{ rate = "25mbit", queue = { qdisc = "bfifo", limit = "900000b" } }'


@dataclass(frozen=True)
class Place:
    """Planted queues, and the phases that fill them."""

    name: str
    line: str
    phases: tuple[str, ...]


PLACES = (
    Place("the upload of the line", f"forward = {UP}", ("upload",)),
    Place("the download of the line", f"reverse = {DOWN}", ("download",)),
    Place("both directions of the line", f"forward = {UP}\nreverse = {DOWN}", ("download", "upload")),
)
INTERFACE = "to-m1"
"""Of the router, towards the modem."""


def tried(place: Place, margin: float | None, before: Run, directory: Path) -> Sequence[Compared]:
    """Each direction before and after the cure. Raises `ValueError` or `InputError` without a cure."""
    advice = bs.fix(before.path, device="linux", link="ethernet", interface=INTERFACE, margin=margin)
    if not advice.steps:
        raise ValueError(" ".join(advice.reasons) or "no step")
    lines = advice.steps[0].lines
    print("\n".join(f"    {line}" for line in lines), file=sys.stderr, flush=True)
    setup = {"r1": "; ".join(lines)}
    after = measure("guest", 2, place.phases, FLOWS, experiment(place), directory, setup)
    return compared(advice.queues, after.meta["summary"]["live"])


def experiment(place: Place) -> str:
    """The experiment file of the path."""
    return PATH.format(title="A line whose queue is cured", home="", wan="", line=place.line, delay='delay = "10ms"')


def row(each: Compared) -> tuple[str, bool]:
    """A direction before and after, and whether it is cured."""
    delays = [each.delay_ns(phase) for phase in (each.before, each.after)]
    rates = [phase and goodput_bps(phase, each.direction) for phase in (each.before, each.after)]
    if None in delays or not all(rates):
        return "not measured", False
    share = rates[1] / rates[0]  # type: ignore[operator]
    is_cured = delays[1] <= max(SHORTER * delays[0], SHORT_NS) and round(share, 2) >= GOODPUT  # type: ignore[operator]
    return f"{delays[0] / 1e6:.0f} | {delays[1] / 1e6:.1f} | {100 * share:.0f} %", is_cured  # type: ignore[operator]


def main(arguments: Sequence[str]) -> int:
    """Cure every place and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--margin", type=float, action="append", help="margins to try (default: the usual one)")
    options = parser.parse_args(arguments)
    failed = 0
    print("| queue | margin | direction | before (ms, p95) | after | goodput left |\n|---|---|---|---|---|---|")
    for place in PLACES:
        with tempfile.TemporaryDirectory() as name:
            before = measure("guest", 1, place.phases, FLOWS, experiment(place), Path(name))
            for margin in options.margin or [None]:
                shown = "usual" if margin is None else f"{100 * margin:g} %"
                for each in tried(place, margin, before, Path(name)):
                    text, is_cured = row(each)
                    failed += not is_cured
                    print(f"| {place.name} | {shown} | {each.direction} | {text} |", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
