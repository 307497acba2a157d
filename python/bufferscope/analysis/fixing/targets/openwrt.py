"""OpenWrt with sqm-scripts: the keys of /etc/config/sqm (openwrt.org, SQM configuration)."""

from collections.abc import Iterator, Mapping

from bufferscope.analysis.fixing import tc
from bufferscope.analysis.fixing.advice import Case, Step
from bufferscope.analysis.fixing.autorate import autorate
from bufferscope.analysis.fixing.framing import Framing
from bufferscope.analysis.fixing.targets.linux import OFFLOAD, PROCESSOR, WAN
from bufferscope.store.verdict import Direction

SCRIPTS = {tc.CAKE: "piece_of_cake.qos", tc.FQ_CODEL: "simplest_tbf.qos"}
LAYERED = {tc.CAKE: "layer_cake.qos", tc.FQ_CODEL: "simple.qos"}
"""With classes by DSCP."""


def commands(device: str, kbit: Mapping[Direction, int], qdisc: str, framing: Framing) -> Iterator[str]:
    """The commands that set the shapers of a device; `kbit` has the rate of each direction, in kbit/s."""
    settings = {
        "interface": device,
        "download": str(kbit.get("down", 0)),
        "upload": str(kbit.get("up", 0)),
        "qdisc": qdisc,
        "script": SCRIPTS[qdisc],
        "linklayer": "atm" if framing.atm else "ethernet",
        "overhead": str(framing.overhead),
        **({"linklayer_advanced": "1", "tcMPU": str(framing.mpu)} if framing.mpu else {}),
        "enabled": "1",
    }
    yield from (f"uci set sqm.@queue[0].{key}='{value}'" for key, value in settings.items())


def steps(case: Case) -> Iterator[Step]:
    """The `uci` commands, and cake-autorate's settings if a rate varies."""
    device = case.interface or WAN
    qdisc = case.qdisc if case.qdisc in SCRIPTS else tc.CAKE
    rates = {rate.direction: rate.usual_kbit if rate.varies else rate.link_kbit for rate in case.rates}
    unshaped = [name for way, name in (("down", "download"), ("up", "upload")) if way not in rates]
    yield Step(
        "On the OpenWrt router, over ssh",
        " ".join(case.whys),
        (
            "opkg update && opkg install luci-app-sqm",
            *commands(device, rates, qdisc, case.framing),
            "uci commit sqm",
            "/etc/init.d/sqm enable",
            "/etc/init.d/sqm restart",
        ),
        undo=("uci set sqm.@queue[0].enabled='0'", "uci commit sqm", "/etc/init.d/sqm restart"),
        notes=(
            f"{device} is the device to the modem, as in Network > Interfaces. OpenWrt 24.10 and later may have apk "
            "instead "
            "of opkg: apk add luci-app-sqm.",
            *(f"The {name} has no queue to remove: 0 leaves it alone." for name in unshaped),
            f"To sort traffic by its DSCP, set script to {LAYERED[qdisc]}.",
            OFFLOAD,
            PROCESSOR,
        ),
    )
    if case.varies:
        yield autorate(case, device, tc.ifb(device))
