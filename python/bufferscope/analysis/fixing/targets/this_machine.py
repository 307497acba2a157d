"""Own queues of this machine: the queueing discipline, the ring of the driver, Wi-Fi, the sender.

If a shaper is there already (as `htb` or `tbf`), only the queue behind it is replaced, so that its rate stays. A
tail-drop queue without a shaper gets a discipline with flow queueing, without a rate. Where the rate is limited by the
driver or behind this machine, a shaper is needed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bufferscope.analysis.fixing import tc
from bufferscope.analysis.fixing.advice import Case, Step
from bufferscope.analysis.fixing.located import LINE, LocatedQueue
from bufferscope.engines.local.facts import MachineFacts
from bufferscope.engines.local.rtnetlink import INGRESS, ROOT, TcObject
from bufferscope.model.disciplines import MANAGED_FLOWS
from bufferscope.store.live import PathEnd

FIFOS = ("pfifo", "bfifo", "pfifo_fast", "noqueue")
"""The default disciplines of interfaces; experiments have no `noqueue`."""
SHAPERS = ("htb", "tbf", "hfsc")
"""Disciplines whose inner queue is replaced without a change of their rate; experiments have no `hfsc`."""
RING_S = 0.010
"""The delay of a ring that is as long as advised."""
LEAST_RING = 64
"""Drivers refuse shorter rings, or round them up."""
DEFAULT_LIMIT = 1_879_048_192
"""The kernel's own maximum of byte queue limits (`DQL_MAX_LIMIT`)."""
LEAST_LIMIT = 2 * tc.FULL
"""The lowest byte queue limit that is advised: a driver needs room for two packets."""
LOWAT_BYTES = 128 << 10
"""`net.ipv4.tcp_notsent_lowat`: what a sender keeps besides its window. Enough for 100 Mbit/s and wake-ups of 10 ms."""
LOW_DELAY = "bbr"


@dataclass(frozen=True)
class Own:
    """What is known of this machine."""

    device: str
    root: TcObject | None
    """The discipline at the root, unless it is a default of the kernel that has no handle."""
    kinds: tuple[str, ...]
    """Every discipline for what is sent."""
    leaf: str | None
    """The parent at which the only queue of a shaper is; None if there is no shaper or several queues."""


def own(machine: MachineFacts | None, device: str) -> Own:
    """The disciplines of an interface of this machine."""
    every = [each for each in machine.qdiscs if each.parent != INGRESS] if machine else []
    root = next((each for each in every if each.parent == ROOT), None)
    return Own(device, root, tuple(each.kind for each in every), _leaf(root, every))


def _leaf(root: TcObject | None, every: list[TcObject]) -> str | None:
    if root is None or root.kind not in SHAPERS or not root.handle:
        return None
    below = [each for each in every if each is not root]
    if not below:
        return f"{root.handle >> 16:x}:1" if root.kind == "tbf" else None
    if len(below) > 1 or below[0].kind not in FIFOS:
        return None
    parent = below[0].parent
    return f"{parent >> 16:x}:{parent & 0xFFFF:x}"


def steps(case: Case) -> Iterator[Step]:
    """What to do on this machine, queue by queue; the first step with commands is the one that `--apply` takes."""
    machine = case.machine
    device = machine.interface if machine else case.interface or "eth0"
    end: PathEnd = case.run.meta["summary"]["live"]["ends"]["client"]
    here = own(machine, device)
    for queue in case.queues:
        if queue.place == "client_qdisc":
            yield _discipline(case, here)
        elif queue.place == "client_driver":
            if end.get("link") == "wifi":
                yield wifi(queue)
            yield from _driver(case, here, end)
        elif queue.place == "client_send_buffer":
            yield send_buffer("On this machine, as root")
    elsewhere = [queue for queue in case.queues if not queue.place.startswith("client_")]
    if elsewhere and all(queue.place in (*LINE, "router_downlink", "hop", "last_hop") for queue in elsewhere):
        yield from _shaped(case, here, [queue.direction for queue in elsewhere])


def _discipline(case: Case, here: Own) -> Step:
    """A discipline for the queue of this machine."""
    where = f"On this machine, as root; {here.device} is the interface to the server"
    qdisc = _qdisc(case)
    limit = f" limit {case.tail.limit(_rate_bps(case))}" if qdisc == tc.SHORT else ""
    if here.leaf:
        assert here.root
        why = f"The shaper {here.root.kind} stays as it is; its queue is replaced by {_named(qdisc)}."
        return Step(
            where,
            why,
            (f"tc qdisc replace dev {here.device} parent {here.leaf} handle {tc.HANDLE} {qdisc}{limit}",),
            undo=(_restore(here),),
            notes=_notes(qdisc),
        )
    managed = [kind for kind in here.kinds if kind in MANAGED_FLOWS]
    shaped = [kind for kind in here.kinds if kind in SHAPERS]
    if managed or shaped:
        found = f"{' and '.join(dict.fromkeys([*shaped, *managed]))} on {here.device}"
        return _shaper(
            case, here, f"Its queue is long although {found} is there, so a shaper below the measured rate replaces it."
        )
    return Step(
        where,
        f"The queue of {here.device} is a plain tail-drop queue; {_named(qdisc)} replaces it. No rate is needed, "
        "because the link "
        "itself is the limit.",
        (f"tc qdisc replace dev {here.device} root {qdisc}{limit}",),
        undo=(_restore(here),),
        notes=_notes(qdisc),
    )


def _driver(case: Case, here: Own, end: PathEnd) -> Iterator[Step]:
    """A queue below the discipline: a shaper moves it into the discipline, and a shorter ring removes it."""
    why = (
        f"The queue is in the driver or the ring of {here.device}, below the queueing discipline. A shaper slightly "
        "below the "
        "rate moves it into the discipline."
    )
    if case.rates:
        yield _shaper(case, here, why)
    if end.get("bql") is False and end.get("ring_packets"):
        packets = max(LEAST_RING, round(_rate_bps(case) / 8 * RING_S / tc.FULL))
        yield Step(
            f"Or, on this machine, as root: a shorter ring of {here.device}",
            "The driver has no byte queue limits, so its ring is the buffer.",
            (f"ethtool -G {here.device} tx {packets}",),
            undo=(f"ethtool -G {here.device} tx {end['ring_packets']}",),
            notes=("ethtool -g shows what the driver accepts. Not every driver can change it.",),
        )
    elif end.get("link") != "wifi":
        if end.get("bql") and case.rates:
            yield _limit(case, here)
        yield Step(
            "At this machine",
            "Its network card sends less than its link should carry.",
            ("Check the cable, the switch port and powerline adapters: ethtool shows the speed of the link.",),
            are_commands=False,
        )


def _limit(case: Case, here: Own) -> Step:
    limit = max(LEAST_LIMIT, round(_rate_bps(case) / 8 * RING_S))
    return Step(
        f"Or, on this machine, as root: lower byte queue limits of {here.device}",
        "The driver has byte queue limits, which follow the load. A lower maximum keeps its ring shorter.",
        (f"echo {limit} | tee /sys/class/net/{here.device}/queues/tx-*/byte_queue_limits/limit_max",),
        undo=(f"echo {DEFAULT_LIMIT} | tee /sys/class/net/{here.device}/queues/tx-*/byte_queue_limits/limit_max",),
    )


def _shaped(case: Case, here: Own, directions: list[str]) -> Iterator[Step]:
    """A shaper on this machine, for queues that are elsewhere."""
    rates = [rate for rate in case.rates if rate.direction in directions]
    machine = case.machine
    if machine and not machine.has_ifb:
        rates = [rate for rate in rates if rate.direction != "down"]
    if rates:
        commands = tc.both(here.device, rates, case.framing, _qdisc(case), case.tail, nat=False)
        yield Step(
            f"On this machine, as root; {here.device} is the interface to the server",
            " ".join(
                [
                    *(rate.why for rate in rates),
                    "The queue is not at this machine: its own shaper keeps it short only while nobody else uses the "
                    "line. "
                    "A router that does this helps everyone behind it.",
                ]
            ),
            tuple(commands),
            undo=(
                *tc.undone(here.device, [rate.direction for rate in rates])[int("up" in directions) :],
                _restore(here),
            ),
            notes=_notes(_qdisc(case)),
        )
    if "up" in directions and machine and LOW_DELAY in machine.congestion:
        yield Step(
            "Or, on this machine, as root: another congestion control",
            "BBR fills queues less than CUBIC does. It helps only what this machine itself uploads.",
            (f"sysctl -w net.ipv4.tcp_congestion_control={LOW_DELAY}",),
            undo=("sysctl -w net.ipv4.tcp_congestion_control=cubic",),
            notes=("The measurement uses the congestion control of its option --congestion: try it first with that.",),
        )


def _shaper(case: Case, here: Own, why: str) -> Step:
    rates = [rate for rate in case.rates if rate.direction == "up"]
    qdisc = _qdisc(case)
    lines = [line for rate in rates for line in tc.shaper(here.device, rate, case.framing, qdisc, case.tail)]
    return Step(
        f"On this machine, as root; {here.device} is the interface to the server",
        " ".join([why, *(rate.why for rate in rates)]),
        tuple(lines),
        undo=(_restore(here),) if lines else (),
        notes=(*_notes(qdisc), *(VARIES for rate in rates if rate.varies)),
    )


VARIES = "The rate varies from second to second, so this fixed one is too high at times and too low at others."


def wifi(queue: LocatedQueue) -> Step:
    """What helps against a queue for the radio."""
    toward = "this machine" if queue.direction == "down" else "the router"
    return Step(
        f"Wi-Fi between this machine and the router (the queue is towards {toward})",
        "The rate of a radio link changes with distance and with what others send, so no fixed shaper is right.",
        (
            "Move closer to the access point, or the access point closer to you",
            "Use 5 GHz or 6 GHz, and a channel that nobody else uses",
            "Use a cable where you can",
            "Use an access point whose driver has flow queueing and airtime limits (mac80211 with fq_codel and AQL, "
            "as in OpenWrt "
            "on ath9k, ath10k, mt76)",
        ),
        are_commands=False,
        notes=("iw dev shows the signal and the rates of this machine's radio.",),
    )


def send_buffer(where: str) -> Step:
    """Less data in the send buffers."""
    return Step(
        where,
        "Data waits in the send buffer of the program that sends it; it delays only this program. A program can set "
        "TCP_NOTSENT_LOWAT for its own sockets, which is better; this is for all of them.",
        (f"sysctl -w net.ipv4.tcp_notsent_lowat={LOWAT_BYTES}",),
        undo=("sysctl -w net.ipv4.tcp_notsent_lowat=4294967295",),
    )


def server(queue: LocatedQueue, case: Case) -> Step:
    """What helps against a queue of the server; its kernel is not known."""
    if queue.place == "server_send_buffer":
        return send_buffer("On the server, as root")
    return Step(
        "On the server, as root, if it is yours; eth0 is its interface to the Internet",
        "The queue is at the server. If it is not yours, measure with another server.",
        ("tc qdisc replace dev eth0 root fq_codel",),
        undo=("tc qdisc del dev eth0 root",),
        notes=(
            "bufferscope measure, run on the server towards this machine, finds the queue as one of its own: fix "
            "--apply then "
            "sets it.",
        ),
    )


def _qdisc(case: Case) -> str:
    return case.qdisc or (tc.best(case.machine.has) if case.machine and case.machine.has else tc.FQ_CODEL)


def _named(qdisc: str) -> str:
    return "a short tail-drop queue, the best that this kernel has" if qdisc == tc.SHORT else qdisc


def _notes(qdisc: str) -> tuple[str, ...]:
    if qdisc == tc.SHORT:
        return (
            "This kernel has neither cake nor fq_codel (bufferscope doctor says how to get them), so flows are not "
            "kept apart.",
        )
    return ()


def _rate_bps(case: Case) -> float:
    """The rate of the upload on the link."""
    return next((rate.usual_kbit * 1000.0 for rate in case.rates if rate.direction == "up"), 0.0)


def _restore(here: Own) -> str:
    """The command that brings the kernel's default back, or says what was there."""
    if here.root is None or not here.root.handle:
        return f"tc qdisc del dev {here.device} root"
    return f"# the disciplines before ({', '.join(here.kinds)}): with --apply, bufferscope fix --undo restores them"
