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
FULL_S = 0.3
"""What a full queue holds, in s."""
UP_MBIT, DOWN_MBIT, DELAY_MS = 8.0, 25.0, 10.0


@dataclass(frozen=True)
class Place:
    """Planted queues, and the phases that fill them."""

    name: str
    line: str
    phases: tuple[str, ...]
    delay_ms: float = DELAY_MS
    """The propagation delay each way."""


def places(up_mbit: float, down_mbit: float, delay_ms: float) -> tuple[Place, ...]:
    """Queues in a line with these rates."""
    up, down = f"forward = {_port(up_mbit)}", f"reverse = {_port(down_mbit)}"
    return (
        Place("the upload of the line", up, ("upload",), delay_ms),
        Place("the download of the line", down, ("download",), delay_ms),
        Place("both directions of the line", f"{up}\n{down}", ("download", "upload"), delay_ms),
    )


def _port(mbit: float) -> str:
    size = round(mbit * 1e6 / 8 * FULL_S)
    return f'{{ rate = "{mbit:g}mbit", queue = {{ qdisc = "bfifo", limit = "{size}b" }} }}'


PLACES = places(UP_MBIT, DOWN_MBIT, DELAY_MS)
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
    delay = f'delay = "{place.delay_ms:g}ms"'
    return PATH.format(title="A line whose queue is cured", home="", wan="", line=place.line, delay=delay)


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
    parser.add_argument("--up", type=float, default=UP_MBIT, help=f"Mbit/s (default: {UP_MBIT:g})")
    parser.add_argument("--down", type=float, default=DOWN_MBIT, help=f"Mbit/s (default: {DOWN_MBIT:g})")
    parser.add_argument("--delay", type=float, default=DELAY_MS, help=f"ms each way (default: {DELAY_MS:g})")
    parser.add_argument("--phase", choices=("upload", "download"), help="only places that load this direction alone")
    options = parser.parse_args(arguments)
    chosen = [
        place
        for place in places(options.up, options.down, options.delay)
        if options.phase is None or place.phases == (options.phase,)
    ]
    failed = 0
    print("| queue | margin | direction | before (ms, p95) | after | goodput left |\n|---|---|---|---|---|---|")
    for place in chosen:
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
