"""MikroTik with RouterOS 7: a simple queue with cake.

The rate is that of the simple queue, which counts IP packets; so the rates here are those of full packets.
"""

from collections.abc import Iterator

from bufferscope.analysis.fixing import tc
from bufferscope.analysis.fixing.advice import Case, Step
from bufferscope.analysis.fixing.targets.firewalls import COUNTS
from bufferscope.analysis.fixing.targets.linux import WAN

PREFIX = "bufferscope"
UNLIMITED = "0"


def steps(case: Case) -> Iterator[Step]:
    """The queue types, the simple queue, and the end of FastTrack."""
    rates = {rate.direction: f"{rate.packet_kbit}k" for rate in case.rates}
    kind = "fq-codel" if case.qdisc == tc.FQ_CODEL else "cake"
    up = "cake-nat=yes" if kind == "cake" else ""
    down = "cake-nat=yes cake-wash=yes" if kind == "cake" else ""
    device = case.interface or WAN
    limits = "/".join(rates.get(way, UNLIMITED) for way in ("down", "up"))
    yield Step(
        "In a terminal of RouterOS 7",
        " ".join(case.whys),
        (
            f"/queue/type/add name={PREFIX}-up kind={kind} {up}".rstrip(),
            f"/queue/type/add name={PREFIX}-down kind={kind} {down}".rstrip(),
            f"/queue/simple/add name={PREFIX} target={device} max-limit={limits} queue={PREFIX}-down/{PREFIX}-up",
            "/ip/firewall/filter/disable [find action=fasttrack-connection]",
        ),
        undo=(
            f"/queue/simple/remove {PREFIX}",
            f'/queue/type/remove [find name~"{PREFIX}-"]',
            "/ip/firewall/filter/enable [find action=fasttrack-connection]",
        ),
        notes=(
            f"{device} is the interface to the modem. With it as the target, the first rate is that of what arrives "
            "there.",
            "Connections with FastTrack bypass simple queues, which is why the rule is disabled.",
            COUNTS,
        ),
    )
