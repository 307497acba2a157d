"""Ctrl-C, once it has been dealt with."""


class CutShortError(Exception):
    """The user stopped the runs; the text says what was finished and where it is.

    No `KeyboardInterrupt`, which typer would turn into an exit status without a word.
    """
