"""Run a program on a host of a guest's network."""

import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from bufferscope.base.errors import EngineError, InputError
from bufferscope.engines import agent
from bufferscope.engines.guest import console, hardware, image, kernels, programs, state
from bufferscope.engines.guest import engine as guest
from bufferscope.engines.guest.initramfs import Initramfs
from bufferscope.engines.guest.programs import NotBorrowed
from bufferscope.engines.shell import Ending, request
from bufferscope.engines.shell.request import ShellNetwork

_SHELLS = ("bash", "sh")
_FILES = {
    "/etc/hosts": "127.0.0.1\tlocalhost\n",
    "/etc/resolv.conf": "",
    # Some programs drop root's rights and become a user of their own.
    "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\ntcpdump:x:100:100::/root:/bin/false\n"
    "nobody:x:65534:65534::/root:/bin/false\n",
    "/etc/group": "root:x:0:\ntcpdump:x:100:\nnogroup:x:65534:\n",
    "/root/.profile": "",
}


class GuestShell:
    """A guest's console: there is one, so no other program can join it."""

    about = "a kernel in a virtual machine"

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
        """Run `command`, or a shell, on the host `on`; returns how it ended. `note` is called before slow steps.

        If this process has a terminal, the program uses it. Otherwise the program's output is copied and it gets no
        input. Then nothing from this machine influences the guest, and the same command gives the same result every
        time. Raises `InputError` for unknown hosts, and `EngineError` if no such guest can be made.
        """
        if refusal := guest.refusals([network.point])[0]:
            raise EngineError(refusal)
        seated = sys.stdin.isatty() and sys.stdout.isatty()
        size = console.terminal_size() if seated else None
        words = ["env", f"TERM={_terminal()}", "HOME=/root", f"PS1={on}:\\w# ", *(command or _shell())]
        asked = request.console(network, on, words, size, quiet=quiet)
        qemu = hardware.find_qemu()
        chosen = kernels.choose(kernel)
        try:
            built = image.build(chosen, agent.program(), note, furnish=lambda root: _furnish(root, command))
        except NotBorrowed as error:
            return Ending(error.status, str(error))
        pairs = guest.cards_of(network.point)
        saved = state.saved_state(qemu, built, note, pairs=pairs)
        if seated and not quiet:
            print(f"bufferscope: Linux {built.release}; Ctrl-] ends it", file=sys.stderr)
        act = console.attend if seated else console.run
        return act(qemu, built, saved, asked, pairs=pairs)

    def join(self, number: str, on: str, command: Sequence[str], *, quiet: bool) -> NoReturn:
        """Refuse, because a guest has one console."""
        raise InputError(
            f"{number} is a network of --engine host; a guest has one console, so no other shell can join it"
        )


def _furnish(root: Initramfs, command: Sequence[str]) -> None:
    programs.add_tools(root, command[0] if command else None)
    for path, content in _FILES.items():
        root.file(path, content.encode())


def _shell() -> list[str]:
    name = next(name for name in _SHELLS if programs.find(name))
    return [name, "--norc", "-i"] if name == "bash" else [name, "-i"]


def _terminal() -> str:
    """The type of this terminal if the guest knows it, otherwise `vt100`."""
    name = os.environ.get("TERM", "")
    return name if name in programs.TERMINALS else "vt100"
