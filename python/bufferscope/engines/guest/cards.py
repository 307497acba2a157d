"""Network cards of the virtual machine: a driver's ring in front of a wire of fixed packet rate.

QEMU's virtio-net with `tx=timer` sends packets from its ring at the ticks of a timer in virtual time, `x-txburst`
packets at each tick. With one packet per tick, and the time of a full packet between ticks, it behaves like a wire with
a driver's ring in front. Two cards on one hub are the ends of a cable.
"""

from collections.abc import Sequence

Card = tuple[str, int | None]
"""A card's hardware address, and the nanoseconds that it takes to send a packet; None: it takes no time."""
Pair = tuple[Card, Card]

_FEATURES_OFF = (
    *("csum", "gso", "host_tso4", "host_tso6", "host_ecn", "host_ufo"),
    *("guest_csum", "guest_tso4", "guest_tso6", "guest_ecn", "guest_ufo", "mrg_rxbuf"),
    "guest_announce",  # the guest would tell its neighbours that it was restored
    "event_idx",  # an interrupt for each packet sent, not for several: the driver knows at once what left the ring
    "ioeventfd",  # a write takes effect at once, not later in another thread
)
_OPTIONS = ",".join(("romfile=", *(f"{feature}=off" for feature in _FEATURES_OFF)))
_AT_ONCE = "x-txtimer=1,x-txburst=256"

NO_ANNOUNCEMENT = ("-global", "migration.announce-rounds=0")
"""After a state is restored, QEMU would send frames of its own, timed by this machine's clock; this prevents it."""


def arguments(pairs: Sequence[Pair]) -> list[str]:
    """QEMU's command-line arguments for the cards."""
    ends = [
        (f"cable{number}.{end}", number, card) for number, pair in enumerate(pairs) for end, card in enumerate(pair)
    ]
    hubs = [part for name, number, _ in ends for part in ("-netdev", f"hubport,id={name},hubid={number}")]
    devices = [part for name, _, card in ends for part in ("-device", _device(name, card))]
    return [*hubs, *devices]


def untimed(pairs: Sequence[Pair]) -> list[Pair]:
    """The same cards without their times. A saved state does not contain the times, so one state serves all wires."""
    return [((first, None), (second, None)) for (first, _), (second, _) in pairs]


def _device(name: str, card: Card) -> str:
    address, wire_ns = card
    timer = _AT_ONCE if wire_ns is None else f"x-txtimer={wire_ns},x-txburst=1"
    return f"virtio-net-pci,netdev={name},mac={address},tx=timer,{timer},{_OPTIONS}"
