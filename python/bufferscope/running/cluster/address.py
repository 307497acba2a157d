"""The values of `--cluster`: the address of a scheduler, or `local` for workers on this machine."""

import re
from dataclasses import dataclass

from bufferscope.base import machine
from bufferscope.base.errors import InputError

ALLOWED = "tcp://HOST:PORT, local or local:N"
MOST_WORKERS = 1024
"""The most workers on one machine."""

_LOCAL = re.compile(r"local(?::([0-9]{1,9}))?")
_REMOTE = re.compile(r"tcp://(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.%a-z]+\]):(?P<port>[0-9]{1,5})")


@dataclass(frozen=True)
class Local:
    """Workers to start on this machine."""

    workers: int


@dataclass(frozen=True)
class Remote:
    """A scheduler that already runs."""

    address: str


def parse(text: str) -> Local | Remote:
    """Parse the value of `--cluster`; raises `InputError` for any other text.

    >>> parse("local:4"), parse("tcp://10.0.0.7:8786")
    (Local(workers=4), Remote(address='tcp://10.0.0.7:8786'))
    """
    if local := _LOCAL.fullmatch(text):
        workers = machine.cpus() if local[1] is None else int(local[1])
        if not 1 <= workers <= MOST_WORKERS:
            raise InputError(f"--cluster: found {text}; allowed: local:1 to local:{MOST_WORKERS}")
        return Local(workers)
    if remote := _REMOTE.fullmatch(text):
        if not 1 <= int(remote["port"]) <= 65535:
            raise InputError(f"--cluster: found the port {remote['port']}; allowed: 1 to 65535")
        return Remote(text)
    raise InputError(f"--cluster: found {text!r:.80}; allowed: {ALLOWED}")
