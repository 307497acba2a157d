"""Requests for a shell, in the form that `crates/agent/src/shell/request.rs` reads."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bufferscope.base.errors import InputError
from bufferscope.model.experiment import Point
from bufferscope.model.identity import LARGEST_SEED
from bufferscope.model.scenario import Scenario

LARGEST_PROCESS = 1 << 22
"""`PID_MAX_LIMIT` of Linux' `linux/threads.h`."""


@dataclass(frozen=True)
class BackgroundCommand:
    """A command that runs on a host for as long as the program runs."""

    host: str
    command: str
    """The text for `sh -c`."""

    @classmethod
    def parse(cls, text: str) -> "BackgroundCommand":
        """Read `HOST=COMMAND`."""
        host, equals, command = text.partition("=")
        if not (host and equals and command.strip()):
            raise InputError(f"--with: found {text!r}; allowed: HOST=COMMAND, as in h2='iperf3 -s'")
        return cls(host, command)


@dataclass(frozen=True)
class ShellNetwork:
    """A network to build for a program."""

    point: Point
    beside: Sequence[BackgroundCommand] = ()
    traffic: bool = False
    """Whether the experiment's own traffic runs at the same time."""
    seed: int = 1


def build(network: ShellNetwork, on: str, *, quiet: bool = False) -> bytes:
    """A request for a program on the host `on`; raises `InputError` for an unknown host or an invalid seed."""
    return _encoded(_building(network, on, quiet=quiet))


def console(
    network: ShellNetwork, on: str, command: Sequence[str], terminal: tuple[int, int] | None, *, quiet: bool = False
) -> bytes:
    """A request for a guest that runs `command` on the host `on`; `terminal` has the terminal's rows and columns.

    Raises `InputError` as `build` does.
    """
    # The same settings as for experiments on the guest engine: every guest starts from the saved random state.
    shell = _building(network, on, quiet=quiet, delay="netem", seed_kernel=True)
    return _encoded({"console": {"shell": shell, "command": list(command), "terminal": terminal}})


def _building(network: ShellNetwork, on: str, *, quiet: bool, **more: object) -> dict[str, object]:
    scenario = network.point.scenario
    if not 0 <= network.seed <= LARGEST_SEED:
        raise InputError(f"--seed: found {network.seed}; allowed: 0 to {LARGEST_SEED}")
    _check("--on", on, scenario)
    for beside in network.beside:
        _check("--with", beside.host, scenario)
    wanted = {
        "scenario": scenario,
        "seed": network.seed,
        "traffic": network.traffic,
        "with": [{"on": beside.host, "command": beside.command} for beside in network.beside],
        **more,
    }
    return {"on": on, "quiet": quiet, "network": {"build": wanted}}


def join(number: str, on: str, *, quiet: bool = False) -> bytes:
    """A request for a program in the network of a running shell, given the number of that shell's process.

    Raises `InputError` for a number that no process can have.
    """
    if len(number) > len(str(LARGEST_PROCESS)) or not 1 <= int(number) <= LARGEST_PROCESS:
        raise InputError(
            f"{number:.20}: no shell has this number; `bufferscope shell EXPERIMENT` says its own as it starts"
        )
    return _encoded({"on": on, "quiet": quiet, "network": {"join": int(number)}})


def _check(option: str, name: str, scenario: Scenario) -> None:
    names = [node["name"] for node in scenario["nodes"]]
    if name not in names:
        raise InputError(f"{option}: found {name!r}; allowed: {', '.join(names)}")


def _encoded(document: Mapping[str, object]) -> bytes:
    text = json.dumps(document, ensure_ascii=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InputError("--on, --with and the command: found bytes that are not UTF-8; allowed: text") from None
