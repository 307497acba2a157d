"""`bufferscope.size`: the equations' answers, and the simulations' beside them."""

from dataclasses import dataclass
from functools import cached_property, partial
from os import PathLike
from pathlib import Path

from bufferscope.base.arguments import FLAG, NAME, PATH, WATCHER, checked, optional
from bufferscope.engines import default
from bufferscope.model.experiment import Experiment
from bufferscope.model.scenario import CongestionControl
from bufferscope.results.result import Result
from bufferscope.running.executors import Watcher
from bufferscope.running.plan import execute, plan
from bufferscope.studies.sizing import load
from bufferscope.studies.sizing.equations import EquationResult, answers
from bufferscope.studies.sizing.line import SIMULATED_PACKET_BYTES, SizedLine, read_line
from bufferscope.studies.sizing.search import Carry, SimulatedSizing, carried, search
from bufferscope.studies.sizing.settings import DEVICE, QueueSetting, fifo, settings


@dataclass(frozen=True)
class Sizing:
    """How large a line's buffer should be."""

    line: SizedLine
    """The line that was described."""
    found: SimulatedSizing | None
    """What the simulations say; None if there were none."""
    notes: tuple[str, ...] = ()
    """What was not simulated, and why."""

    @cached_property
    def answers(self) -> tuple[EquationResult, ...]:
        """What the equations say."""
        return tuple(answers(self.line))

    @property
    def limit_packets(self) -> int:
        """The tail drop to set: the smallest that was found, or else the bandwidth-delay product."""
        if self.found:
            return self.found.smallest.limit_packets or 1
        return self.line.packets(self.line.bdp_bytes)

    @cached_property
    def settings(self) -> tuple[tuple[QueueSetting, str], ...]:
        """Every discipline set for this line, with the command that sets it on a device."""
        found = [*fifo(self.line, self.limit_packets), *settings(self.line)]
        tc = load.arguments(self.line, [each.queue for each in found])
        return tuple((each, f"tc qdisc replace dev {DEVICE} root {text}") for each, text in zip(found, tc, strict=True))


def sizing(line: SizedLine, carry: Carry | None) -> Sizing:
    """The answers for a line, checked by the runs that `carry` makes, unless they would take too long."""
    if carry is None:
        return Sizing(line, None, line.notes)
    if reason := load.too_large(line):
        return Sizing(line, None, (*line.notes, f"not checked by a simulation: {reason}"))
    notes = [*line.notes]
    if line.packet_bytes != SIMULATED_PACKET_BYTES:
        notes.append(f"the simulated packets have {SIMULATED_PACKET_BYTES} bytes, whatever --packet is")
    return Sizing(line, search(line, partial(carried, line, carry)), tuple(notes))


@checked(
    rate=NAME, rtt=NAME, target=NAME, packet=NAME, buffer=optional(NAME), congestion=NAME, simulate=FLAG, out=PATH,
    reuse=FLAG, watcher=WATCHER,
)  # fmt: skip
def size(
    rate: str,
    rtt: str,
    *,
    flows: int = 1,
    target: str = "98%",
    packet: str = "1500b",
    buffer: str | None = None,
    congestion: CongestionControl = "cubic",
    simulate: bool = True,
    seed: int = 1,
    repeat: int = 3,
    jobs: int | None = None,
    out: str | PathLike[str] = "results",
    reuse: bool = False,
    watcher: Watcher | None = None,
) -> Sizing:
    """Size the buffer of a line: published equations, checked by simulations of the same line.

    The simulations look for the smallest tail-drop queue that keeps `target` of the goodput of a very long queue, and
    try fq_codel, cake, codel and pie on the same load.

    Parameters
    ----------
    rate
        The line's rate with a unit of `tc`, as in `"10mbit"`.
    rtt
        The round-trip time without queues, with a unit, as in `"40ms"`.
    flows
        The number of TCP flows, 1 or more.
    target
        The share of the goodput to keep, as in `"98%"`.
    packet
        The size of a full IP packet, as in `"1500b"`.
    buffer
        A given buffer whose delay is asked for, as in `"128kb"` or `"87p"`. Default: none.
    congestion
        The congestion control of the flows, as in `"cubic"` or `"reno"`.
    simulate
        Whether to check the equations by simulations.
    seed
        The first seed of the simulations.
    repeat
        The number of seeds.
    jobs
        The number of runs that are carried out at once. Default: one for each processor.
    out
        The directory under which the runs are stored.
    reuse
        Take a stored run if a new one would give the same records.
    watcher
        Informed of progress, as for `run`.

    Returns
    -------
    Sizing
        The equations' answers, what the simulations found, and the `tc` commands that set each discipline.

    Raises
    ------
    InputError
        A value is impossible.

    Examples
    --------
    >>> import bufferscope as bs
    >>> sized = bs.size("10mbit", "40ms", flows=16)                                             # doctest: +SKIP
    >>> sized.found.smallest.limit_packets                                                      # doctest: +SKIP
    """
    line = read_line(rate, rtt, flows=flows, target=target, packet=packet, buffer=buffer, congestion=congestion)
    engine = default()

    def carry(experiment: Experiment) -> Result:
        tasks = plan(experiment, [engine], Path(out), seed=seed, repeat=repeat, reuse=reuse)
        return Result(execute(tasks, jobs=jobs, watcher=watcher, layout="single"))

    return sizing(line, carry if simulate else None)
