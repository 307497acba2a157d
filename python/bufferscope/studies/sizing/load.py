"""The experiment that checks a size: the line with its flows, a ping beside them, and one queue after another."""

from collections.abc import Mapping, Sequence

from bufferscope.model.experiment import Experiment
from bufferscope.model.overrides import toml
from bufferscope.studies.choice import command
from bufferscope.studies.choice.bottleneck import FRAME_BYTES
from bufferscope.studies.choice.command import bare
from bufferscope.studies.sizing.line import SizedLine

NAME = "size"
KEY = "link.bottleneck.forward.queue"
"""The path of the queue that is varied."""
PORT = "router>client"
PERIODS, FEWEST_PERIODS = 10, 3
"""How often the flows fall back in a run, and the fewest times that still say something."""
LEAST_S, LONGEST_S = 30, 600
MOST_PACKETS = 5_000_000
"""Of a run; the simulator forwards about a million in a second."""
CUBIC_PER_S3, CUBIC_FALLS_TO = 0.4, 0.7
"""RFC 9438: the constant C, and the share of the window that is left after a loss."""


def experiment(line: SizedLine, queues: Mapping[str, Mapping[str, object]]) -> Experiment:
    """An experiment with a point for each queue, by name, at the line's bottleneck."""
    measured_s = seconds(line)
    # A complete file of its own, because it is stored with the runs, and its names are shown to users.
    text = f"""\
title = "Which buffer for {line.rate_bps / 1e6:g} Mbit/s and {line.rtt_ns / 1e6:g} ms?"
duration = "{measured_s + warmup_s(line)}s"
warmup = "{warmup_s(line)}s"
record = ["probes", "flows", "queues", "transfers", "sojourns", "capacity"]
figures = ["trade_offs"]

[[link]]
name = "access"
ends = ["server", "router"]
delay = "{line.rtt_ns // 2}ns"

[[link]]
name = "bottleneck"
ends = ["router", "client"]
rate = "{line.rate_bps}bit"

[[traffic]]
name = "load"
kind = "tcp"
from = "server"
to = "client"
flows = {line.flows}
congestion = {toml(line.congestion)}
stagger = "{_stagger_us(line)}us"

[[traffic]]
name = "ping"
kind = "ping"
from = "client"
to = "server"
interval = "97ms"

[sweep]
{toml(KEY)} = {toml({name: dict(queue) for name, queue in queues.items()})}
"""
    return Experiment(NAME, text.encode(), NAME)


def tail_drop(packets: int) -> dict[str, object]:
    """The plain queue of this many packets."""
    return {"qdisc": "pfifo", "limit": f"{packets}p"}


def arguments(line: SizedLine, queues: Sequence[Mapping[str, object]]) -> list[str]:
    """Each queue as arguments of `tc`."""
    made = experiment(line, {str(number): queue for number, queue in enumerate(queues)})
    defaults = dict(zip(bare(), experiment(line, bare()).points, strict=True))
    return [command.arguments(point, PORT, queue, defaults) for point, queue in zip(made.points, queues, strict=True)]


def warmup_s(line: SizedLine) -> int:
    """Until slow start is over and the flows share the line: a third of the measured time, at least 5 s."""
    return max(5, round(seconds(line) / 3))


def seconds(line: SizedLine) -> int:
    """The measured time of a run: ten periods of the flows, within bounds. See `too_large`."""
    wanted = min(max(LEAST_S, PERIODS * period_s(line)), LONGEST_S)
    return max(1, round(min(wanted, 0.75 * MOST_PACKETS * FRAME_BYTES * 8 / line.rate_bps)))


def period_s(line: SizedLine) -> float:
    """The time between two losses of a flow, with a queue of the bandwidth-delay product.

    Reno gains a packet in a round trip and has half a window to regain: W/2 round trips. CUBIC takes as long as that at
    most, and otherwise the cube root of the packets that it lost over C (RFC 9438, equation 2).
    """
    window = max(2.0, 2 * line.bdp_bytes / FRAME_BYTES / line.flows)
    reno_s = window / 2 * 2 * line.rtt_ns / 1e9
    if line.congestion != "cubic":
        return reno_s
    return min(reno_s, float((window * (1 - CUBIC_FALLS_TO) / CUBIC_PER_S3) ** (1 / 3)))


def too_large(line: SizedLine) -> str | None:
    """Why a simulation would say nothing in reasonable time; None if it is possible."""
    if seconds(line) >= FEWEST_PERIODS * period_s(line):
        return None
    return (
        f"a flow of {line.congestion} falls back only every {period_s(line):.3g} s here, and the check is limited to "
        f"{MOST_PACKETS} packets or {LONGEST_S} s a run; more flows or a lower rate can be checked"
    )


def longest(line: SizedLine) -> int:
    """Packets in a queue that is surely long enough: four bandwidth-delay products, and two packets a flow."""
    held = 4 * line.bdp_bytes / FRAME_BYTES
    return 1 << (max(64, round(held), 2 * line.flows) - 1).bit_length()


def _stagger_us(line: SizedLine) -> int:
    """Spread the starts of all flows over the first two seconds."""
    return min(100_000, 2_000_000 // line.flows)
