"""The programs that the kernel engines start: the agent, and the tools of the distribution."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from bufferscope.base.commit import PACKAGE
from bufferscope.base.errors import EngineError
from bufferscope.base.programs import packages
from bufferscope.engines import agent
from bufferscope.engines.doctor.findings import EngineCheck, Fix
from bufferscope.engines.guest import programs

_CHECKOUT = PACKAGE.parents[1]
"""The source tree, if this package runs from one."""


def agent_check() -> EngineCheck:
    """Check that the agent exists and can run."""
    try:
        path = agent.program()
    except EngineError as error:
        return EngineCheck("agent", "missing", str(error), _build_agent())
    if not _is_for_x86_64(path):
        return EngineCheck("agent", "missing", f"{path} is not a program for x86-64 Linux", _build_agent())
    return EngineCheck("agent", "ready", str(path))


def tool_checks(names: Iterable[str]) -> Iterator[EngineCheck]:
    """Check the distribution's tools, which are started by name."""
    for name in names:
        if (path := programs.find(name)) is None:
            yield EngineCheck(name, "missing", "not found in PATH", Fix(packages=packages([name])))
        else:
            yield EngineCheck(name, "ready", path)


def _build_agent() -> Fix:
    """A source tree can build the agent; an installation without the agent has no remedy, as it was built without."""
    is_checkout = (_CHECKOUT / "Makefile").is_file() and (_CHECKOUT / "crates/agent").is_dir()
    return Fix(commands=(f"make -C {_CHECKOUT} agent",) if is_checkout else ())


def _is_for_x86_64(path: Path) -> bool:
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        with path.open("rb") as file:
            return bool(ELFFile(file).header["e_machine"] == "EM_X86_64")
    except (OSError, ELFError, OverflowError):
        return False
