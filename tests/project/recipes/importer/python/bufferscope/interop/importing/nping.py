"""What `nping --icmp` prints, with the times of requests and answers.

Times are in units of 100 microseconds, so round trips are that exact.
"""

import re
from typing import Any

from bufferscope.interop.importing import budget
from bufferscope.interop.importing.content import Unusable, lines
from bufferscope.interop.importing.result import Probe, Reading
from bufferscope.interop.importing.values import NANOSECONDS

FIRST_LINES = 4000
LONGEST_LINE = 300
_PACKET = re.compile(
    r"^(?P<event>SENT|RCVD) \((?P<seconds>\d{1,8}\.\d{1,9})s\) ICMP \[\S+ > (?P<to>\S+) Echo (?:request|reply) "
    r".*\bseq=(?P<seq>\d{1,5})\]"
)


def recognises(content: Any) -> bool:
    """Whether text comes from nping."""
    return any(_PACKET.match(line[:LONGEST_LINE]) for line in content[:FIRST_LINES].split("\n"))


def read(content: Any) -> Reading:
    """The requests as probes, with the round trips of those that were answered; raises `Unusable`."""
    bounds = budget.current()
    found: dict[tuple[str, int], int] = {}
    target = ""
    for line in lines(content):
        if packet := _PACKET.match(line[:LONGEST_LINE]):
            bounds.records(1)
            found.setdefault((packet["event"], int(packet["seq"])), round(float(packet["seconds"]) * NANOSECONDS))
            target = target or packet["to"]
    sent = {seq: at_ns for (event, seq), at_ns in found.items() if event == "SENT"}
    if not sent:
        raise Unusable("found no request; expected lines with SENT")
    reading = Reading("nping", title=f"nping to {target}")
    received = {seq: at_ns for (event, seq), at_ns in found.items() if event == "RCVD"}
    probes = [Probe(seq, at_ns, received[seq] - at_ns if seq in received else None) for seq, at_ns in sent.items()]
    reading.ping("ping", probes)
    return reading
