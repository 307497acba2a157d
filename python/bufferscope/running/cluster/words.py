"""Texts from other machines, made safe for the terminal."""

from bufferscope.base.errors import printable

LONGEST = 500


def one_line(error: BaseException) -> str:
    """An exception of any origin: its type and the first line of its text."""
    if type(error) is Exception and len(error.args) == 1 and isinstance(error.args[0], bytes):
        # Dask returns this in place of an exception that it can't unpickle.
        return "an exception of a type that is not known here; the worker's log has it"
    return printable(f"{type(error).__name__}: {error}".partition("\n")[0])[:LONGEST]


def named(address: str) -> str:
    """The name of a worker: its address."""
    return f"worker {printable(address)}"
