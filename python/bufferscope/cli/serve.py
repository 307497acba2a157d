"""`bufferscope serve`."""

from typing import Annotated

import typer


def serve(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[OPTION...]", help="Options of the server; --help lists them.", show_default=False),
    ] = None,
) -> None:
    """Serve measurements: the far end of [bold]bufferscope measure[/bold], which prints the line to type there.

    It runs until Ctrl-C, needs no privilege, and answers only clients that have its token. One test runs at a time; \
others wait. Its options are those of the program bufferscope-live: --listen ADDRESS:PORT, --token-file FILE, --once, \
--compatible (answer other people's clients too) and others. The log has counts and no addresses.

    [bold]Examples[/bold]

      bufferscope serve

      bufferscope serve --listen 0.0.0.0:47300 --token-file token

      bufferscope serve --once

      bufferscope serve --status
    """
    from bufferscope.engines.live.serving import serve as run

    run(arguments or [])
