"""Run the user's own programs on an emulated host, so that their packets cross the experiment's network."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol

from bufferscope.engines.shell.request import ShellNetwork


@dataclass(frozen=True)
class Ending:
    """How the program ended."""

    status: int
    """Its exit status as shells report it: 128 plus the signal's number if a signal ended it."""
    message: str = ""
    """Why it could not be run, or not be waited for; otherwise empty."""


class Shell(Protocol):
    """An engine's way to run a program in a network."""

    about: str
    """Which kernel the network is on, in a few words."""

    def run(
        self,
        network: ShellNetwork,
        on: str,
        command: Sequence[str],
        *,
        kernel: str | None,
        quiet: bool,
        note: Callable[[str], None],
    ) -> Ending:
        """Run `command`, or a shell, on the host `on`; returns how it ended, if this process still exists then.

        `note` is called before slow steps. Raises `InputError` for unknown hosts, and `EngineError` if there can be no
        such network.
        """

    def join(self, number: str, on: str, command: Sequence[str], *, quiet: bool) -> NoReturn:
        """Run `command`, or a shell, in the network of the running shell with this number.

        Raises `InputError` if there can be no such shell.
        """
