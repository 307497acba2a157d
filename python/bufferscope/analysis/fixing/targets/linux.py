"""A Linux router: shapers at its interface to the modem, and its interface towards this machine."""

from collections.abc import Iterator

from bufferscope.analysis.fixing import tc
from bufferscope.analysis.fixing.advice import Case, Step
from bufferscope.analysis.fixing.autorate import autorate

WAN, LAN = "wan", "lan"
OFFLOAD = "Turn off hardware flow offload on the router: its packets bypass the queue."
PROCESSOR = (
    "If a processor of the router is busy with soft interrupts while you measure (top, column si), that is the "
    "limit, not "
    "the line."
)


def steps(case: Case) -> Iterator[Step]:
    """The shapers, or cake-autorate if a rate varies."""
    device, qdisc = case.interface or WAN, case.qdisc or tc.CAKE
    directions = [rate.direction for rate in case.rates]
    nat = qdisc == tc.CAKE
    yield Step(
        f"On the Linux router, as root; {device} is its interface to the modem",
        " ".join([*case.whys, *([ATTEND] if "down" in directions else [])]),
        tuple(tc.both(device, case.rates, case.framing, qdisc, case.tail, nat=nat)),
        undo=tuple(tc.undone(device, directions)),
        notes=(*_notes(qdisc), "The settings are gone after a restart: put the commands into a script."),
    )
    if case.varies:
        yield autorate(case, device, tc.ifb(device))


ATTEND = "What arrives can only be shaped after it has arrived, so it is sent through an intermediate functional block."


def towards_machine(case: Case) -> Step:
    """The queue of the router's port towards this machine."""
    device, qdisc = case.interface or LAN, case.qdisc or tc.FQ_CODEL
    if qdisc == tc.SHORT:
        qdisc += f" limit {case.tail.limit(case.rates[0].usual_kbit * 1000 if case.rates else 0)}"
    return Step(
        f"On the Linux router, as root; {device} is its interface towards this machine",
        "The link itself limits the rate there, so no shaper is needed, only a discipline that keeps the queue short.",
        (f"tc qdisc replace dev {device} root {qdisc}",),
        undo=(f"tc qdisc del dev {device} root",),
        notes=("Check the cable, switch or powerline adapter between the router and this machine first.",),
    )


def _notes(qdisc: str) -> Iterator[str]:
    if qdisc == tc.CAKE:
        yield "If its kernel does not know cake (modprobe sch_cake fails), use --qdisc fq_codel."
    elif qdisc == tc.FQ_CODEL:
        yield "If its kernel does not know fq_codel, use --qdisc bfifo."
    else:
        yield "This is a short tail-drop queue for kernels without cake and fq_codel: flows are not kept apart."
    yield OFFLOAD
    yield PROCESSOR
