"""Checks for the host engine: what it needs from this machine and its kernel. The agent tests the kernel."""

import sys
from collections.abc import Iterator, Mapping

from bufferscope._core import QDISCS
from bufferscope.base.errors import EngineError
from bufferscope.base.programs import needed_by
from bufferscope.engines.doctor.findings import NOTHING, EngineCheck, Fix, State
from bufferscope.engines.doctor.programs import agent_check, tool_checks
from bufferscope.engines.doctor.system import System
from bufferscope.engines.host import engine as host

_ESSENTIAL = ("htb", "pfifo", "bfifo")
"""Without these, links can't have a rate or a queue."""
_MODULE_PACKAGES = {"ubuntu": "linux-modules-extra-{kernel}", "fedora": "kernel-modules-extra-{kernel}"}
"""The distributions that package a kernel's rarer modules separately, and those packages."""
_USER_NAMESPACES = (
    ("kernel.unprivileged_userns_clone", 0, 1),
    ("kernel.apparmor_restrict_unprivileged_userns", 1, 0),
    ("user.max_user_namespaces", 0, 15_000),
)
"""Settings that can deny user namespaces to ordinary users: name, the value that denies, and one that allows."""


def checks(system: System) -> Iterator[EngineCheck]:
    """The agent and its tools, permission to make networks, and what the kernel has."""
    if sys.platform != "linux":
        yield EngineCheck("Linux", "missing", "this engine is a Linux machine's own kernel: use --engine sim")
        return
    programs = [agent_check(), *tool_checks(program.names[0] for program in needed_by("host"))]
    yield from programs
    if any(check.state == "missing" for check in programs):
        yield EngineCheck("kernel", "missing", "not checked: the check needs the missing programs")
        return
    try:
        found = host.capabilities()
    except EngineError as error:
        yield EngineCheck("permission", "missing", str(error), _allow_namespaces(system))
        return
    yield _permission(found["privilege"])
    yield from _kernel(system, found["kernel"], found["qdiscs"], found["congestion"])


def _allow_namespaces(system: System) -> Fix:
    refusing = [(name, allows) for name, refuses, allows in _USER_NAMESPACES if system.setting(name) == refuses]
    return Fix(commands=tuple(system.as_root(f"sysctl -w {name}={allows}") for name, allows in refusing))


def _permission(privilege: str) -> EngineCheck:
    if privilege == "root":
        return EngineCheck("permission", "ready", "root")
    return EngineCheck("permission", "ready", "an ordinary user's, in user namespaces")


def _kernel(
    system: System, release: str, qdiscs: Mapping[str, bool], congestion: Mapping[str, bool]
) -> Iterator[EngineCheck]:
    """One check for all that the kernel has, and one for each part that it lacks."""
    there = [name for parts in (qdiscs, congestion) for name, has in parts.items() if has]
    yield EngineCheck("kernel", "ready", f"Linux {release} has {', '.join(there)}")
    for name in (name for name, has in qdiscs.items() if not has):
        known = QDISCS.get(name)
        yield _lacking(system, name, known.module if known else f"sch_{name}")
    for name in (name for name, has in congestion.items() if not has):
        yield _lacking(system, name, f"tcp_{name}")


def _lacking(system: System, name: str, module: str) -> EngineCheck:
    state: State = "limited"
    if name in _ESSENTIAL:
        state, follows = "missing", "no link can have a rate: use --engine guest"
    elif name == "netem":
        follows = "the agent makes the wires itself, which takes CPU time"
    else:
        follows = f"experiments with {name} are refused: use --engine guest for them"
    remedy = _bring_module(system, module)
    brought = "" if remedy != NOTHING else "; no such module is installed"
    return EngineCheck(module, state, follows + brought, remedy)


def _bring_module(system: System, module: str) -> Fix:
    """How to get a module: load it if it is installed, or first install the distribution's package of rarer modules."""
    load = system.as_root(f"modprobe {module}")
    if system.has_module(module):
        return Fix(commands=(load,))
    package = _MODULE_PACKAGES.get(system.distribution)
    if package is None or not system.has_module("veth"):
        return NOTHING
    return Fix(packages=(package.format(kernel=system.kernel),), commands=(load,))
