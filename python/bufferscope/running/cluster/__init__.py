"""Runs on several machines: the workers of a Dask cluster carry out the jobs and send the runs back.

The scheduler distributes the jobs among the workers, and gives the jobs of a lost worker to others. The runs that
arrive are checked and stored as if they had been made on this machine.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bufferscope.base.errors import InputError
from bufferscope.running.cluster.address import parse

if TYPE_CHECKING:
    from bufferscope.running.cluster.executor import Dask

INSTALL = "python -m pip install 'distributed>=2025.9'"
"""As in the extra `cluster` of pyproject.toml: the package itself is in no index that pip could ask for it."""


@contextmanager
def connected(cluster: str) -> Iterator["Dask"]:
    """An executor on the cluster `tcp://HOST:PORT`, or on workers started here for the block: `local` or `local:N`.

    Raises `InputError` for any other text and if Dask is missing, and `EngineError` if no scheduler answers.
    """
    where = parse(cluster)
    try:
        from bufferscope.running.cluster.connection import client_of
    except ModuleNotFoundError as error:
        if error.name not in ("dask", "distributed"):
            raise
        raise InputError(f"--cluster needs Dask, which is not installed here: {INSTALL}") from None
    from bufferscope.running.cluster.executor import Dask

    with client_of(where) as client:
        yield Dask(client)
