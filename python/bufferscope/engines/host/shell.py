"""Run a program on an emulated host on this machine's kernel."""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from bufferscope.base.errors import EngineError
from bufferscope.engines import agent
from bufferscope.engines.shell import request
from bufferscope.engines.shell.request import ShellNetwork


class HostShell:
    """A network on this machine, which further shells can join. This process becomes the agent, and does not return."""

    about = "this machine's kernel"

    def run(
        self,
        network: ShellNetwork,
        on: str,
        command: Sequence[str],
        *,
        kernel: str | None,
        quiet: bool,
        note: Callable[[str], None],
    ) -> NoReturn:
        """Run `command`, or the user's shell, in a new network."""
        become(request.build(network, on, quiet=quiet), command)

    def join(self, number: str, on: str, command: Sequence[str], *, quiet: bool) -> NoReturn:
        """Run `command`, or the user's shell, in the network of a running shell."""
        become(request.join(number, on, quiet=quiet), command)


def become(wanted: bytes, command: Sequence[str]) -> NoReturn:
    """Replace this process with the agent, which runs `command` (or the user's shell) as `wanted` says.

    So no process of ours stands between the terminal and the program, and the waiting parent gets its exit status.
    """
    program = agent.program()
    # The agent inherits the file by its number; a file without a name can't be left behind.
    descriptor = os.memfd_create("bufferscope-request", 0)
    os.write(descriptor, wanted)
    os.lseek(descriptor, 0, os.SEEK_SET)
    # Python ignores this signal, but programs don't expect that.
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(program, [str(program), "--shell", str(descriptor), *command])
    except OSError as error:
        raise EngineError(f"{program}: {error.strerror}") from error
