"""What held a flow back: the link, one of the windows, the application, losses or a queue that is too short."""

from dataclasses import dataclass
from enum import StrEnum

from bufferscope.analysis.explanation.evidence import Evidence
from bufferscope.analysis.explanation.losses import Losses
from bufferscope.analysis.explanation.senders import Sender

MOST = 0.5
"""A limit that holds for at least half of a flow's time is its limit."""
STEADY = 0.05
"""A window that varies by less than this share does not react to the path."""
USED = 0.7
"""A window of which less than this share is in flight is not the limit."""
FEWEST_LOSSES = 3
"""Fewer losses are chance."""


class Limit(StrEnum):
    """What a flow's goodput was limited by."""

    LINK = "link"
    RECEIVER = "receiver's window"
    BUFFER = "send buffer"
    FIXED = "fixed congestion window"
    APPLICATION = "application"
    LOSS = "losses on a wire"
    QUEUE = "drops before the link is full"
    START = "slow start"
    UNKNOWN = "cannot tell"


@dataclass(frozen=True)
class LimitedFlow:
    """A flow and its limit."""

    sender: Sender
    limit: Limit
    port: str | None = None
    """The port where the limit is, if it is in one."""
    share: float | None = None
    """The share of its time for which the limit held; None if it is not measured."""


def limited(found: Evidence, sender: Sender) -> LimitedFlow:
    """The limit of a flow. What its own host says comes first: only a flow that its ends do not stop asks the path."""
    if not sender.is_tcp:
        full = full_port(found, sender)
        return LimitedFlow(sender, Limit.LINK, full) if full else LimitedFlow(sender, Limit.APPLICATION)
    if sender.receiver_share >= MOST:
        return LimitedFlow(sender, Limit.RECEIVER, share=sender.receiver_share)
    if sender.buffer_share >= MOST:
        return LimitedFlow(sender, Limit.BUFFER, share=sender.buffer_share)
    application = max(sender.application_share, sender.idle_share)
    if application >= MOST and sender.always_writes:
        return LimitedFlow(sender, Limit.BUFFER, share=application)
    if application >= MOST:
        return LimitedFlow(sender, Limit.APPLICATION, share=application)
    full = full_port(found, sender)
    if full:
        return LimitedFlow(sender, Limit.LINK, full)
    return _unfilled(found, sender)


def _unfilled(found: Evidence, sender: Sender) -> LimitedFlow:
    """The limit of a flow that always has data to send and does not fill its path."""
    lost = found.losses.get(sender.flow)
    if lost and lost.on_wire >= FEWEST_LOSSES and lost.on_wire >= lost.in_queue:
        return LimitedFlow(sender, Limit.LOSS, lost.port)
    if lost and lost.in_queue >= FEWEST_LOSSES:
        return LimitedFlow(sender, Limit.QUEUE, lost.queue_port)
    if _is_fixed(sender, lost):
        return LimitedFlow(sender, Limit.FIXED)
    return LimitedFlow(sender, Limit.START if sender.is_starting else Limit.UNKNOWN)


def _is_fixed(sender: Sender, lost: Losses | None) -> bool:
    """Whether a congestion window is used, and stays the same without losses."""
    if not sender.cwnd_bytes or sender.most_cwnd_bytes is None or sender.least_cwnd_bytes is None:
        return False
    varies = (sender.most_cwnd_bytes - sender.least_cwnd_bytes) / sender.cwnd_bytes
    return varies <= STEADY and sender.inflight_bytes >= USED * sender.cwnd_bytes and not sender.retransmits


def full_port(found: Evidence, sender: Sender) -> str | None:
    """The port on the way of a flow's data that is full."""
    full = [found.queues[port.name] for port in sender.way.out if port.name in found.queues]
    busiest = max((each for each in full if each.is_full), key=lambda each: each.delay_s, default=None)
    return busiest.port if busiest else None
