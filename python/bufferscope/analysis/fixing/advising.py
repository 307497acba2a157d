"""From a live measurement to advice."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from bufferscope.analysis.fixing import tc
from bufferscope.analysis.fixing.advice import Advice, Case, Step
from bufferscope.analysis.fixing.framing import UNKNOWN, Framing, framing
from bufferscope.analysis.fixing.located import LINE, NAMES, LocatedQueue, located
from bufferscope.analysis.fixing.rates import UNSTEADY, ShaperRate, shaper_rate
from bufferscope.analysis.fixing.targets import firewalls, linux, mikrotik, openwrt, provider, this_machine
from bufferscope.base.errors import EngineError, InputError
from bufferscope.engines.local.facts import MachineFacts, facts
from bufferscope.metrics.records import RunRecords
from bufferscope.store.live import live_of
from bufferscope.store.verdict import Place

THIS_MACHINE, PROVIDER, DEFAULT_ROUTER = "this-machine", "provider", "openwrt"
ROUTERS: Mapping[str, Callable[[Case], Iterable[Step]]] = {
    "linux": linux.steps,
    "openwrt": openwrt.steps,
    "opnsense": firewalls.opnsense,
    "pfsense": firewalls.pfsense,
    "mikrotik": mikrotik.steps,
}
TARGETS = (*ROUTERS, THIS_MACHINE, PROVIDER)
ADAPTIVE = ("linux", "openwrt")
"""The routers for which there is cake-autorate."""
OWN: tuple[Place, ...] = ("client_send_buffer", "client_qdisc", "client_driver")
BEYOND: tuple[Place, ...] = ("hop", "last_hop")
SERVER: tuple[Place, ...] = ("server_driver", "server_qdisc", "server_send_buffer")


def advise(
    run: RunRecords,
    target: str | None = None,
    link: str = UNKNOWN,
    interface: str | None = None,
    qdisc: str | None = None,
    machine: MachineFacts | None = None,
    raised: float = 0.0,
    margin: float | None = None,
) -> Advice:
    """What to do about the queues of a live measurement.

    `margin` is the share of a rate that shapers leave unused, by default that of `rates.MARGIN`, and `raised` by how
    much it is smaller than that.

    `target` is one of `TARGETS`; None: the device at which the queue is. Raises `InputError` for a run that is no live
    measurement, and for an unknown name.
    """
    live = live_of(run.meta["summary"])
    if live is None:
        raise InputError(f"{run.id}: no live measurement; allowed: a run of `bufferscope measure`")
    if target is not None and target not in TARGETS:
        raise InputError(f"--device: found {target!r:.60}; allowed: {', '.join(TARGETS)}")
    if qdisc is not None and qdisc not in tc.QDISCS:
        raise InputError(f"--qdisc: found {qdisc!r:.60}; allowed: {', '.join(tc.QDISCS)}")
    if machine and machine.has and target == THIS_MACHINE and qdisc and qdisc not in machine.has:
        raise InputError(f"--qdisc: this machine's kernel does not have {qdisc}")
    shape = framing(link)
    found = located(live)
    if not found.queues:
        return Advice(target or "", (), (), (), found.reasons)
    chosen = target or _usual(found.queues)
    rates = {queue.direction: shaper_rate(run, queue.direction, shape, raised, margin) for queue in found.queues}
    ordered = [rate for way in ("up", "down") if (rate := rates.get(way))]
    case = Case(run, found.queues, tuple(ordered), shape, interface, qdisc, machine)
    steps, reasons = _steps(case, chosen, shape)
    missing = [
        f"{NAMES[queue.direction].capitalize()}: no rate, because its goodput was not measured. Measure that "
        "direction too."
        for queue in found.queues
        if rates[queue.direction] is None and queue.place in (*LINE, "client_driver")
    ]
    return Advice(chosen, found.queues, tuple(ordered), tuple(steps), (*found.reasons, *missing, *reasons))


def is_for_this_machine(run: RunRecords, target: str | None) -> bool:
    """Whether the advice depends on what this machine has."""
    live = live_of(run.meta["summary"])
    if target is not None or live is None:
        return target == THIS_MACHINE
    queues = located(live).queues
    return bool(queues) and _usual(queues) == THIS_MACHINE


def machine_of(run: RunRecords, target: str | None, interface: str | None = None) -> MachineFacts | None:
    """What is known of this machine, if the advice depends on it; None if not, or if that cannot be found out.

    `interface` counts if this machine was asked for. Raises `InputError` for a name that is no interface.
    """
    if not is_for_this_machine(run, target):
        return None
    try:
        return facts(run.meta["summary"]["live"]["address"], interface if target == THIS_MACHINE else None)
    except EngineError:
        return None


def _usual(queues: tuple[LocatedQueue, ...]) -> str:
    """The device at which most of the queues are."""
    places = {queue.place for queue in queues}
    if places & {*LINE, "router_downlink"}:
        return DEFAULT_ROUTER
    return THIS_MACHINE if places & {*OWN, *SERVER} else PROVIDER


def _steps(case: Case, target: str, shape: Framing) -> tuple[list[Step], list[str]]:
    if target == PROVIDER:
        return [provider.report(case)], []
    if target == THIS_MACHINE:
        steps = [step for step in this_machine.steps(case) if step.lines]
        steps += [this_machine.server(queue, case) for queue in case.queues if queue.place in SERVER]
        return steps, [] if steps else ["No setting of this machine shortens this queue."]
    return _on_router(case, target)


def _on_router(case: Case, target: str) -> tuple[list[Step], list[str]]:
    """The steps on a router: shapers for the line, other steps for other queues."""
    line = [queue for queue in case.queues if queue.place in LINE or queue.place in BEYOND]
    wifi = case.run.meta["summary"]["live"]["ends"]["client"].get("link") == "wifi"
    steps: list[Step] = []
    reasons: list[str] = []
    directions = [queue.direction for queue in line]
    shaped = Case(
        case.run,
        tuple(line),
        tuple(rate for rate in case.rates if rate.direction in directions),
        case.framing,
        case.interface,
        case.qdisc,
        case.machine,
    )
    if shaped.rates and shaped.varies and (target not in ADAPTIVE or case.qdisc not in (None, tc.CAKE)):
        reasons.append(_too_varied(shaped.rates, case.qdisc if target in ADAPTIVE else target))
    elif shaped.rates:
        steps += ROUTERS[target](shaped)
    for queue in case.queues:
        if queue.place == "router_downlink":
            steps.append(this_machine.wifi(queue) if wifi else linux.towards_machine(case))
        elif queue.place in OWN:
            reasons.append("A queue is at this machine, where no router can help: use --device this-machine.")
        elif queue.place in SERVER:
            steps.append(this_machine.server(queue, case))
    reasons += _about(shaped)
    return steps, reasons


def _about(case: Case) -> Iterator[str]:
    """What to know about the rates."""
    for rate in case.rates:
        if not rate.varies and rate.variation is not None and rate.variation > UNSTEADY:
            name = NAMES[rate.direction].capitalize()
            yield f"{name}: the rate varies by {100 * rate.variation:.0f} %. Measure again at another time of day."
        if rate.phase["numbers"]["levelled"] is False:
            yield (
                f"{NAMES[rate.direction].capitalize()}: goodput or delay was still changing at the end of the test, "
                "so the rate may "
                "be too low."
            )
    if any(queue.place in BEYOND for queue in case.queues):
        yield (
            "A queue is beyond your router. A shaper helps only if the limit there is that of your line alone; "
            "otherwise report "
            "it: --device provider."
        )
    if case.framing.name == UNKNOWN and case.rates:
        yield (
            "The kind of the line is not known: 44 bytes of headers are assumed for each packet. --link docsis, "
            "pppoe-ptm, ethernet "
            "and others say which it is."
        )


def _too_varied(rates: tuple[ShaperRate, ...], what: str | None) -> str:
    worst = max(rates, key=lambda rate: rate.variation or 0)
    return (
        f"The rate varies from second to second ({NAMES[worst.direction]} by {100 * (worst.variation or 0):.0f} %), "
        "so no fixed rate "
        f"is right, and {what} has no shaper that follows the line. cake-autorate does "
        "(--device openwrt, --device linux)."
    )
