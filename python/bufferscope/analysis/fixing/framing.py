"""What a link adds to each packet: the keywords of tc-cake(8), and the bytes that they stand for.

`ptm` is not used: it makes a shaper count 64b/65b coding, which a measured rate already contains.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bufferscope.base.errors import InputError

CELL, CELL_PAYLOAD = 53, 48
"""An ATM cell, and its payload, in bytes."""
ETHERNET_HEADER = 14
"""What Linux counts of a packet on an Ethernet device besides its IP packet, in bytes."""


@dataclass(frozen=True)
class Framing:
    """How many bytes a packet takes on a link."""

    name: str
    about: str
    cake: str
    """The arguments of cake."""
    overhead: int
    """Bytes for each packet, besides its IP packet."""
    mpu: int = 0
    """The fewest bytes that a packet takes."""
    atm: bool = False
    """Whether packets are sent in ATM cells."""

    def bytes_of(self, packet: int) -> int:
        """What an IP packet of some bytes takes on the link.

        >>> FRAMINGS["pppoe-llcsnap"].bytes_of(1500), FRAMINGS["docsis"].bytes_of(1500), FRAMINGS["docsis"].bytes_of(40)
        (1749, 1518, 64)
        """
        framed = max(packet + self.overhead, self.mpu)
        return -(-framed // CELL_PAYLOAD) * CELL if self.atm else framed

    @property
    def over_ethernet(self) -> int:
        """The overhead for disciplines that count the Ethernet header of a packet themselves, at least 0."""
        return max(self.overhead - ETHERNET_HEADER, 0)


UNKNOWN = "unknown"
FRAMINGS: Mapping[str, Framing] = {
    each.name: each
    for each in (
        Framing(UNKNOWN, "not known, but not ADSL", "overhead 44", 44),
        Framing("docsis", "cable", "docsis", 18, 64),
        Framing("ethernet", "Ethernet, most fibre", "ethernet", 38, 84),
        Framing("ether-vlan", "fibre or Ethernet with a VLAN tag", "ethernet ether-vlan", 42, 84),
        Framing("pppoe-ptm", "VDSL2 with PPPoE", "overhead 30", 30),
        Framing("bridged-ptm", "VDSL2, bridged", "overhead 22", 22),
        Framing("pppoe-llcsnap", "ADSL with PPPoE, LLC", "pppoe-llcsnap", 40, atm=True),
        Framing("pppoe-vcmux", "ADSL with PPPoE, VC-MUX", "pppoe-vcmux", 32, atm=True),
        Framing("pppoa-llc", "ADSL with PPPoA, LLC", "pppoa-llc", 14, atm=True),
        Framing("pppoa-vcmux", "ADSL with PPPoA, VC-MUX", "pppoa-vcmux", 10, atm=True),
        Framing("bridged-llcsnap", "ADSL, bridged, LLC", "bridged-llcsnap", 32, atm=True),
        Framing("bridged-vcmux", "ADSL, bridged, VC-MUX", "bridged-vcmux", 24, atm=True),
        Framing("ipoa-llcsnap", "ADSL with IPoA, LLC", "ipoa-llcsnap", 16, atm=True),
        Framing("ipoa-vcmux", "ADSL with IPoA, VC-MUX", "ipoa-vcmux", 8, atm=True),
        Framing("conservative", "not known, maybe ADSL", "conservative", 48, atm=True),
    )
}


def framing(name: str) -> Framing:
    """The framing of a link by its name. Raises `InputError`."""
    if name not in FRAMINGS:
        raise InputError(f"--link: found {name!r:.60}; allowed: {', '.join(FRAMINGS)}")
    return FRAMINGS[name]
