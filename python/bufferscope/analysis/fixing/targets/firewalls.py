"""OPNsense and pfSense: pipes of dummynet with FQ-CoDel.

dummynet counts IP packets, without the headers of the link, so the rates here are those of full packets.
"""

from collections.abc import Iterator

from bufferscope.analysis.fixing.advice import Case, Step

COUNTS = (
    "It counts IP packets without the headers of the line: go down by another 5 % if many small packets are sent "
    "(games, "
    "calls, DSL)."
)


def opnsense(case: Case) -> Iterator[Step]:
    """Pipes, queues and rules of the shaper."""
    lines: list[str] = []
    for rate in case.rates:
        name = "Upload" if rate.direction == "up" else "Download"
        lines += [
            f"Firewall > Shaper > Pipes, add: bandwidth {rate.packet_kbit}, metric Kbit/s, scheduler FlowQueue-CoDel, "
            f"ECN on, description {name}",
            f"Firewall > Shaper > Queues, add: pipe {name}, weight 100, description {name}-queue",
            "Firewall > Shaper > Rules, add: interface WAN, proto ip, direction "
            f"{'out' if name == 'Upload' else 'in'}, "
            f"target {name}-queue",
        ]
    yield Step(
        "In OPNsense's web interface",
        " ".join(_whys(case)),
        (*lines, "Apply"),
        are_commands=False,
        undo=("Disable the rules, and apply",),
        notes=(COUNTS,),
    )


def pfsense(case: Case) -> Iterator[Step]:
    """Limiters, their queues, and a floating rule."""
    lines: list[str] = []
    for rate in case.rates:
        name = "WANUpload" if rate.direction == "up" else "WANDownload"
        lines += [
            f"Firewall > Traffic Shaper > Limiters, new limiter {name}: bandwidth {rate.packet_kbit} Kbit/s, queue "
            "management "
            "algorithm Tail Drop, scheduler FQ_CODEL, ECN on",
            f"In {name}, add a queue {name}Q: queue management algorithm Tail Drop, ECN on",
        ]
    up, down = (
        f"{name}Q" if any(rate.direction == way for rate in case.rates) else "none"
        for way, name in (("up", "WANUpload"), ("down", "WANDownload"))
    )
    lines.append(
        "Firewall > Rules > Floating, new rule: action match, interface WAN, direction out, gateway that of WAN, "
        f"In / Out pipe: {up} / {down}"
    )
    yield Step(
        "In pfSense's web interface",
        " ".join(_whys(case)),
        (*lines, "Apply changes"),
        are_commands=False,
        undo=("Disable the floating rule, and apply changes",),
        notes=(
            COUNTS,
            "Without a limiter for the upload, pfSense accepts none for the download: add one with a high rate.",
        )
        if up == "none"
        else (COUNTS,),
    )


def _whys(case: Case) -> Iterator[str]:
    for rate in case.rates:
        yield (
            f"{'Upload' if rate.direction == 'up' else 'Download'}: the measured goodput of "
            f"{rate.goodput_bps / 1e6:.3g} Mbit/s "
            f"with the headers of IP and TCP, less a margin of {100 * rate.margin:.0f} %."
        )
