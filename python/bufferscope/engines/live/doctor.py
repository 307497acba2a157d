"""Checks for live measurements: the program, and what this machine's kernel lets an ordinary user see of the path."""

import errno
import os
import socket
import sys
from collections.abc import Iterator

from bufferscope.base.commit import PACKAGE
from bufferscope.base.errors import EngineError
from bufferscope.engines.doctor.findings import EngineCheck, Fix
from bufferscope.engines.doctor.system import System
from bufferscope.engines.live.program import program

_CHECKOUT = PACKAGE.parents[1]
_SO_TIMESTAMPNS, _SO_TIMESTAMPING = 35, 37
"""asm-generic/socket.h"""
_SOFTWARE_STAMPS = 0x2 | 0x8 | 0x10 | 0x100
"""TX_SOFTWARE, RX_SOFTWARE, SOFTWARE and TX_SCHED of linux/net_tstamp.h."""
_PINGS = "net.ipv4.ping_group_range"


def checks(system: System) -> Iterator[EngineCheck]:
    """The program, timestamps of packets, answers of hops, pings, and this machine's own queues."""
    if sys.platform != "linux":
        yield EngineCheck("Linux", "missing", "live measurements need Linux at both ends")
        return
    try:
        yield EngineCheck("bufferscope-live", "ready", str(program()))
    except EngineError as error:
        yield EngineCheck("bufferscope-live", "missing", str(error), _build())
    yield _received_stamps()
    yield _sent_stamps()
    yield _hop_answers()
    yield _pings(system)


def _build() -> Fix:
    is_checkout = (_CHECKOUT / "Makefile").is_file() and (_CHECKOUT / "crates/live").is_dir()
    return Fix(commands=(f"make -C {_CHECKOUT} live",) if is_checkout else ())


def _received_stamps() -> EngineCheck:
    if _accepts(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1):
        return EngineCheck("receive timestamps", "ready", "the kernel stamps packets that arrive")
    return EngineCheck("receive timestamps", "limited", "round trips include the time until the program runs")


def _sent_stamps() -> EngineCheck:
    if _accepts(socket.SOL_SOCKET, _SO_TIMESTAMPING, _SOFTWARE_STAMPS):
        details = "the kernel stamps packets before and after the queueing discipline, if the driver takes part"
        return EngineCheck("transmit timestamps", "ready", details)
    return EngineCheck(
        "transmit timestamps", "limited", "the delay in this machine's queueing discipline is not measured"
    )


def _hop_answers() -> EngineCheck:
    if _accepts(socket.IPPROTO_IP, socket.IP_RECVERR if hasattr(socket, "IP_RECVERR") else 11, 1):
        return EngineCheck("answers of hops", "ready", "probes with a limited TTL need no privilege")
    return EngineCheck(
        "answers of hops", "limited", "hops of the path are not seen, so a queue is located less exactly"
    )


def _pings(system: System) -> EngineCheck:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP).close()
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM):
            return EngineCheck(
                "pings", "limited", f"the first hop is probed by limited TTL alone: {os.strerror(error.errno or 0)}"
            )
        allow = Fix(commands=(system.as_root(f"sysctl -w {_PINGS}='0 2147483647'"),))
        return EngineCheck(
            "pings", "limited", "the first hop is probed once a second, because users may not ping", allow
        )
    return EngineCheck("pings", "ready", "an ordinary user may ping, so the first hop is probed often")


def _accepts(level: int, option: int, value: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.setsockopt(level, option, value)
        except OSError:
            return False
    return True
